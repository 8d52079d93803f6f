-- name: history_exists
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :table;

-- name: create_history
CREATE TABLE IF NOT EXISTS {migration} (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    release INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- name: history
SELECT number, release, checksum FROM {migration} ORDER BY number;

-- name: record
INSERT INTO {migration} (number, name, release, checksum, applied_at)
VALUES (:number, :name, :release, :checksum, :now);

-- name: dump
SELECT sql FROM sqlite_schema
WHERE sql IS NOT NULL AND substr(name, 1, length(:prefix)) = :prefix
ORDER BY tbl_name, type DESC, name;
