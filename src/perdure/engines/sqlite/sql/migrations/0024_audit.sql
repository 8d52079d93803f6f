-- release: 1
-- The audit trail says why, from where, on how many jobs, and of which bulk command an entry is a part. Entries are only
-- added: a trigger refuses to change one, and to delete one that is newer than the time up to which retention, if it is
-- switched on, takes them away.

ALTER TABLE {audit} ADD COLUMN why TEXT;
ALTER TABLE {audit} ADD COLUMN source TEXT;
ALTER TABLE {audit} ADD COLUMN jobs INTEGER;
ALTER TABLE {audit} ADD COLUMN bulk_id TEXT;
CREATE INDEX {audit_bulk} ON {audit} (bulk_id, at) WHERE bulk_id IS NOT NULL;

CREATE TABLE {audit_retention} (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    pruned_to INTEGER NOT NULL
) STRICT;

CREATE TRIGGER {audit_unchanged} BEFORE UPDATE ON {audit} BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only: entries are never changed'); END;
CREATE TRIGGER {audit_kept} BEFORE DELETE ON {audit} WHEN NOT EXISTS (SELECT 1 FROM {audit_retention} AS r WHERE r.pruned_to >= old.at) BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only: only its retention deletes entries'); END;
