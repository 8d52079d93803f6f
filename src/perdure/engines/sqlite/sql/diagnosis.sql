-- name: waiting
SELECT queue, min(since) FROM {ready} GROUP BY queue ORDER BY queue;

-- name: journal_mode
PRAGMA journal_mode;

-- name: synchronous
PRAGMA synchronous;
