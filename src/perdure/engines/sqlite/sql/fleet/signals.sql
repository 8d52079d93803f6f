-- name: version
-- Changes when another connection has committed.
PRAGMA data_version;

-- name: anything
-- Work to take, or a running job to be called off: whatever else was committed wakes nobody.
SELECT
    EXISTS (SELECT 1 FROM {ready})
    OR EXISTS (SELECT 1 FROM {lease} WHERE cancel_at IS NOT NULL);
