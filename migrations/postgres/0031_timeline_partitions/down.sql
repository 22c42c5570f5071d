CREATE FUNCTION unpartition_timeline() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    this_month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC');
    bound uuid := least_session_id((this_month + interval '2 months') AT TIME ZONE 'UTC');
    newest uuid := (SELECT session FROM session_events ORDER BY session DESC LIMIT 1);
    permitted record;
BEGIN
    bound := greatest(
        bound,
        (SELECT upper FROM timeline_partitions ORDER BY upper DESC NULLS LAST LIMIT 1));
    IF newest >= bound THEN
        -- The first 48 bits are milliseconds since 1970 (RFC 9562, version 7).
        bound := least_session_id(interval '1 month' + to_timestamp(
            ('x' || lpad(left(replace(newest::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0));
    END IF;
    ALTER TABLE session_events RENAME TO session_events_parts;
    ALTER INDEX session_events_pkey RENAME TO session_events_parts_pkey;
    CREATE TABLE session_events (LIKE session_events_parts INCLUDING DEFAULTS);
    ALTER TABLE session_events ADD CONSTRAINT session_events_pkey PRIMARY KEY (session, version);
    INSERT INTO session_events SELECT * FROM session_events_parts;
    EXECUTE format(
        'ALTER TABLE session_events ADD CONSTRAINT session_events_bound CHECK (session < %L::uuid)',
        bound);
    FOR permitted IN
        SELECT privilege_type AS right,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'session_events_parts'::regclass
    LOOP
        EXECUTE format('GRANT %s ON session_events TO %s', permitted.right, permitted.role);
    END LOOP;
END
$$;
SELECT unpartition_timeline();
DROP FUNCTION unpartition_timeline();
DROP FUNCTION maintain_timeline(timestamptz, timestamptz);
DROP VIEW timeline_partitions;
DROP TABLE session_events_parts;
