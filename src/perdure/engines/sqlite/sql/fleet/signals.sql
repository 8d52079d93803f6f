-- name: version
-- Changes when another connection has committed.
PRAGMA data_version;

-- name: anything
-- Jobs to claim, or a running job to cancel: other commits wake no worker.
SELECT
    EXISTS (SELECT 1 FROM {ready})
    OR EXISTS (SELECT 1 FROM {lease} WHERE cancel_at IS NOT NULL);
