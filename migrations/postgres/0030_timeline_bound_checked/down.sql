CREATE FUNCTION unchecked_bound() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    definition text;
BEGIN
    SELECT pg_get_constraintdef(oid) INTO STRICT definition FROM pg_constraint
        WHERE conrelid = 'session_events'::regclass AND conname = 'session_events_bound';
    ALTER TABLE session_events DROP CONSTRAINT session_events_bound;
    EXECUTE format(
        'ALTER TABLE session_events ADD CONSTRAINT session_events_bound %s NOT VALID', definition);
END
$$;
SELECT unchecked_bound();
DROP FUNCTION unchecked_bound();
