-- release: 1
-- The audit trail says why, from where, on how many jobs, and of which bulk command an entry is a part. Entries are only
-- added: a trigger refuses to change one, and to delete one that is newer than the time up to which retention, if it is
-- switched on, takes them away.
ALTER TABLE {audit} ADD COLUMN why text, ADD COLUMN source text, ADD COLUMN jobs integer,
    ADD COLUMN bulk_id text COLLATE "C";
CREATE INDEX ON {audit} (bulk_id, at, id) WHERE bulk_id IS NOT NULL;
CREATE TABLE {audit_retention} (
    one integer PRIMARY KEY CHECK (one = 1),
    pruned_to timestamptz NOT NULL
);
CREATE FUNCTION {audit_unchanged}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only: entries are never changed';
END
$$;
CREATE FUNCTION {audit_kept}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM {audit_retention} r WHERE r.pruned_to >= old.at) THEN
        RAISE EXCEPTION 'the audit trail is append-only: only its retention deletes entries';
    END IF;
    RETURN old;
END
$$;
CREATE TRIGGER unchanged BEFORE UPDATE ON {audit} FOR EACH ROW EXECUTE FUNCTION {audit_unchanged}();
CREATE TRIGGER kept BEFORE DELETE ON {audit} FOR EACH ROW EXECUTE FUNCTION {audit_kept}();
CREATE TRIGGER not_emptied BEFORE TRUNCATE ON {audit} FOR EACH STATEMENT EXECUTE FUNCTION {audit_unchanged}();
