-- name: groups
-- Groups that have dead letters, the last to fail first: one seek for each.
WITH RECURSIVE each_group (fingerprint) AS (
    SELECT min(place.fingerprint) FROM {finished} AS place INDEXED BY {finished_fingerprint}
    WHERE place.state = 'dead' AND place.fingerprint IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(place.fingerprint) FROM {finished} AS place INDEXED BY {finished_fingerprint}
        WHERE place.state = 'dead' AND place.fingerprint > each_group.fingerprint
    )
    FROM each_group WHERE each_group.fingerprint IS NOT NULL
    LIMIT :most + 1
)
SELECT known.fingerprint, known.kind, known.error_type, known.message, known.first_at, known.last_at
FROM each_group CROSS JOIN {failure_group} AS known ON known.fingerprint = each_group.fingerprint
WHERE (:kind IS NULL OR known.kind = :kind) AND (known.last_at, known.fingerprint) < (:at, :fingerprint)
ORDER BY known.last_at DESC, known.fingerprint DESC
LIMIT :limit;

-- name: are_many
WITH RECURSIVE each_group (fingerprint) AS (
    SELECT min(place.fingerprint) FROM {finished} AS place INDEXED BY {finished_fingerprint}
    WHERE place.state = 'dead' AND place.fingerprint IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(place.fingerprint) FROM {finished} AS place INDEXED BY {finished_fingerprint}
        WHERE place.state = 'dead' AND place.fingerprint > each_group.fingerprint
    )
    FROM each_group WHERE each_group.fingerprint IS NOT NULL
    LIMIT :most + 1
)
SELECT count(each_group.fingerprint) > :most FROM each_group;

-- name: some_groups
SELECT known.fingerprint, known.kind, known.error_type, known.message, known.first_at, known.last_at
FROM json_each(:fingerprints) AS row CROSS JOIN {failure_group} AS known ON known.fingerprint = row.value;

-- name: count_dead
SELECT count(*), max(seen.job_id)
FROM (
    SELECT place.job_id FROM {finished} AS place INDEXED BY {finished_fingerprint}
    WHERE place.state = 'dead' AND place.fingerprint = :fingerprint
    ORDER BY place.job_id DESC
    LIMIT :cap + 1
) AS seen;

-- name: hours
SELECT counted.fingerprint, counted.hour, counted.deaths, counted.failures
FROM json_each(:fingerprints) AS row
CROSS JOIN {failure_count} AS counted ON counted.fingerprint = row.value AND counted.hour >= :since;

-- name: unprinted
-- Dead letters without a fingerprint, with their last error.
SELECT
    place.job_id, job.kind, last.token, coalesce(last.error_type, ''), coalesce(last.message, place.reason),
    place.finished_at
FROM {finished} AS place INDEXED BY {finished_unprinted}
CROSS JOIN {job} AS job ON job.id = place.job_id
LEFT JOIN {attempt} AS last ON
    last.job_id = place.job_id AND last.token = (SELECT max(token) FROM {attempt} WHERE job_id = place.job_id)
WHERE place.state = 'dead' AND place.fingerprint IS NULL
LIMIT :limit;

-- name: print_dead
UPDATE {finished} SET fingerprint = row.value ->> 2
FROM json_each(:rows) AS row WHERE {finished}.job_id = row.value ->> 0;

-- name: print_attempts
UPDATE {attempt} SET fingerprint = row.value ->> 2
FROM json_each(:rows) AS row WHERE {attempt}.job_id = row.value ->> 0 AND {attempt}.token = row.value ->> 1;

-- name: add_groups
INSERT INTO {failure_group} (fingerprint, kind, error_type, message, first_at, last_at)
SELECT
    row.value ->> 2, min(row.value ->> 3), min(row.value ->> 4), min(row.value ->> 5), min(row.value ->> 6),
    max(row.value ->> 6)
FROM json_each(:rows) AS row
WHERE true
GROUP BY row.value ->> 2
ON CONFLICT (fingerprint) DO UPDATE SET
    first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at);
