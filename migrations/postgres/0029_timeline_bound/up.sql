-- avouch:contract-of 0002_partner_api since 0.1.0
-- avouch:partition session_events
-- The timeline gets a partition for each month, so that old ones are dropped instead of deleted row by
-- row. The rows that exist become the first partition, which ends with the next month. The constraint
-- says so beforehand: it is checked while rows are read and written, and the partition is attached
-- without reading them again. A foreign key would keep partitions from being dropped.
CREATE FUNCTION least_session_id(at timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT rpad(lpad(to_hex(greatest(0, floor(extract(epoch FROM at) * 1000)::bigint)), 12, '0'), 32, '0')::uuid $$;
COMMENT ON FUNCTION least_session_id IS
    'The least identifier (RFC 9562, version 7) of a moment, without version and variant';

CREATE FUNCTION bound_timeline() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    this_month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC');
    bound uuid := least_session_id((this_month + interval '2 months') AT TIME ZONE 'UTC');
BEGIN
    EXECUTE format(
        'ALTER TABLE session_events ADD CONSTRAINT session_events_bound CHECK (session < %L::uuid) NOT VALID',
        bound);
END
$$;
SELECT bound_timeline();
DROP FUNCTION bound_timeline();

ALTER TABLE session_events DROP CONSTRAINT session_events_session_fkey;
