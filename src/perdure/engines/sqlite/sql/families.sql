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
    CAST(json_group_array(json_array(number, job_id, kind, fate, result, error, warnings)) AS BLOB)
FROM (
    SELECT number, job_id, kind, fate, result, error, warnings FROM {child}
    WHERE parent_id = :parent_id AND family = :key AND number >= :first
    ORDER BY number
    LIMIT :limit
);

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
