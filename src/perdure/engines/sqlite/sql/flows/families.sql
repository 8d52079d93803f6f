-- name: is_held
SELECT 1 FROM {lease} WHERE job_id = :job_id AND token = :token;

-- name: family
SELECT key, total, succeeded, failed, quorum, on_end FROM {family} WHERE parent_id = :parent_id AND key = :key;

-- name: families
SELECT turn, key, total, succeeded, failed, quorum, on_end FROM {family} WHERE parent_id = :parent_id;

-- name: several
-- Families by parent and key.
SELECT
    family.parent_id, family.key, family.total, family.succeeded, family.failed, family.quorum, family.on_end
FROM json_each(:rows) AS row
CROSS JOIN {family} AS family ON family.parent_id = row.value ->> 0 AND family.key = row.value ->> 1;

-- name: children
SELECT
    CAST(json_group_array(json_array(number, job_id, kind, fate, result, error, warnings, is_joined)) AS BLOB)
FROM (
    SELECT
        child.number, COALESCE(joined.job_id, child.job_id) AS job_id, child.kind, child.fate, child.result,
        child.error, child.warnings, joined.job_id IS NOT NULL AS is_joined
    FROM {child} AS child LEFT JOIN {joined} AS joined ON joined.child_id = child.job_id
    WHERE child.parent_id = :parent_id AND child.family = :key AND child.number >= :first
    ORDER BY child.number
    LIMIT :limit
);

-- name: fates
SELECT child.number, COALESCE(joined.job_id, child.job_id) AS job_id, child.kind, child.fate, joined.job_id IS NOT NULL
FROM {child} AS child LEFT JOIN {joined} AS joined ON joined.child_id = child.job_id
WHERE child.parent_id = :parent_id AND child.family = :key
ORDER BY child.number
LIMIT :limit;

-- name: join
INSERT INTO {joined} (child_id, job_id, parent_id, is_open)
SELECT row.value ->> 0, row.value ->> 1, :parent_id, 1 FROM json_each(:rows) AS row;

-- name: waits_for
-- Which of these jobs is the parent, or waits for it: the parent's own parent, a job that joined the parent, and so on.
WITH RECURSIVE waiting (id) AS (
    SELECT :parent_id
    UNION
    SELECT job.parent_id FROM waiting CROSS JOIN {job} AS job ON job.id = waiting.id WHERE job.parent_id IS NOT NULL
    UNION
    SELECT joined.parent_id
    FROM waiting CROSS JOIN {joined} AS joined ON joined.job_id = waiting.id
    WHERE joined.is_open = 1
)
SELECT row.value FROM json_each(:ids) AS row WHERE row.value IN (SELECT waiting.id FROM waiting) LIMIT 1;

-- name: add_family
INSERT INTO {family} (parent_id, key, turn, total, succeeded, failed, quorum, on_end, created_at, next_link)
VALUES (:parent_id, :key, :turn, :total, 0, 0, :quorum, :on_end, :now, :next_link);

-- name: add_children
INSERT INTO {child} (parent_id, family, number, job_id, kind)
SELECT :parent_id, :key, row.key, row.value ->> 0, row.value ->> 1 FROM json_each(:rows) AS row;

-- name: note_parent
UPDATE {job} SET parent_id = :parent_id
FROM json_each(:rows) AS row
WHERE {job}.id = row.value ->> 0;

-- name: note_is_parent
UPDATE {job} SET is_parent = 1, cursor = COALESCE(:cursor, cursor) WHERE id = :parent_id;

-- name: planned
SELECT document FROM {plan} WHERE job_id = :job_id AND number = :number;
