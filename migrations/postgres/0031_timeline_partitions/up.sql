-- avouch:partition session_events
-- The table becomes the first partition of one with its name. Rights are copied, since those of
-- a partition do not count for who reads the whole.
CREATE FUNCTION partition_timeline() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bound uuid;
    permitted record;
BEGIN
    SELECT substring(pg_get_constraintdef(oid) FROM '[0-9a-f]{8}-[0-9a-f-]{27}')::uuid
        INTO STRICT bound FROM pg_constraint
        WHERE conrelid = 'session_events'::regclass AND conname = 'session_events_bound';
    ALTER TABLE session_events RENAME TO session_events_first;
    ALTER INDEX session_events_pkey RENAME TO session_events_first_pkey;
    CREATE TABLE session_events (LIKE session_events_first INCLUDING DEFAULTS)
        PARTITION BY RANGE (session);
    ALTER TABLE session_events ADD CONSTRAINT session_events_pkey PRIMARY KEY (session, version);
    EXECUTE format(
        'ALTER TABLE session_events ATTACH PARTITION session_events_first FOR VALUES FROM (MINVALUE) TO (%L)',
        bound);
    ALTER TABLE session_events_first DROP CONSTRAINT session_events_bound;
    CREATE TABLE session_events_rest PARTITION OF session_events DEFAULT;
    FOR permitted IN
        SELECT privilege_type AS right,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'session_events_first'::regclass
    LOOP
        EXECUTE format('GRANT %s ON session_events TO %s', permitted.right, permitted.role);
    END LOOP;
END
$$;
SELECT partition_timeline();
DROP FUNCTION partition_timeline();

-- Rows of a month without a partition are in `session_events_rest`, and are moved when it gets one. Those of
-- a month that has passed stay there until their session is deleted. A partition is dropped when no session of its months is left. Runs with the rights of its owner:
-- the service needs none to change the schema.
CREATE FUNCTION maintain_timeline(at timestamptz, before timestamptz) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '200ms' AS $$
DECLARE
    month timestamp;
    from_id uuid;
    to_id uuid;
    partition text;
    old record;
    changed integer := 0;
BEGIN
    -- Everybody may call a function, and its locks last until the caller's transaction ends.
    IF NOT has_table_privilege(session_user, 'session_events', 'DELETE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'no permission to delete from session_events';
    END IF;
    IF NOT pg_try_advisory_xact_lock(4852310118) THEN
        RETURN 0;
    END IF;
    FOR ahead IN 0..2 LOOP
        month := date_trunc('month', at AT TIME ZONE 'UTC') + make_interval(months => ahead);
        from_id := least_session_id(month AT TIME ZONE 'UTC');
        to_id := least_session_id((month + interval '1 month') AT TIME ZONE 'UTC');
        partition := 'session_events_' || to_char(month, 'YYYYMM');
        CONTINUE WHEN EXISTS (
            SELECT 1 FROM timeline_partitions
            WHERE to_id <= upper AND (lower IS NULL OR from_id >= lower));
        EXECUTE format('CREATE TABLE %I (LIKE session_events INCLUDING DEFAULTS)', partition);
        LOCK TABLE session_events_rest IN ACCESS EXCLUSIVE MODE;
        EXECUTE format(
            'WITH moved AS (DELETE FROM session_events_rest WHERE session >= %L AND session < %L RETURNING *)
             INSERT INTO %I SELECT * FROM moved', from_id, to_id, partition);
        EXECUTE format(
            'ALTER TABLE session_events ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            partition, from_id, to_id);
        changed := changed + 1;
    END LOOP;
    FOR old IN SELECT * FROM timeline_partitions WHERE upper <= least_session_id(least(at, before)) LOOP
        CONTINUE WHEN EXISTS (
            SELECT 1 FROM sessions
            WHERE id < old.upper AND id >= coalesce(old.lower, '00000000-0000-0000-0000-000000000000'));
        EXECUTE format('DROP TABLE %s', old.partition);
        changed := changed + 1;
    END LOOP;
    DELETE FROM session_events_rest WHERE (session, version) IN (
        SELECT session, version FROM session_events_rest AS event
        WHERE session < least_session_id(least(maintain_timeline.at, before))
            AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = event.session)
        LIMIT 10000);
    RETURN changed;
EXCEPTION
    -- A long transaction uses the table. Those behind it must not wait; the next call tries again.
    WHEN lock_not_available THEN RETURN 0;
END
$$;

CREATE VIEW timeline_partitions AS
    SELECT inhrelid::regclass AS partition,
        substring(bounds FROM $$FROM \('([0-9a-f-]{36})'\)$$)::uuid AS lower,
        substring(bounds FROM $$TO \('([0-9a-f-]{36})'\)$$)::uuid AS upper
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        CROSS JOIN LATERAL pg_get_expr(relpartbound, inhrelid) AS bounds
    WHERE inhparent = 'session_events'::regclass;

-- Temporary tables of whoever calls it are looked up last.
CREATE FUNCTION fix_path() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION maintain_timeline SET search_path = %I, pg_temp', current_schema());
END
$$;
SELECT fix_path();
DROP FUNCTION fix_path();
