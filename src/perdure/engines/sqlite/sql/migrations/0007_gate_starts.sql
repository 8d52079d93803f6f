-- release: 1
-- The starts of a rate in the row of its key, [at, count, at, count, ...] with the oldest first: a row for each start cost
-- more than all else that a job does at its gates.

ALTER TABLE {gate} ADD COLUMN starts TEXT NOT NULL DEFAULT '[]';
UPDATE {gate} SET
    until = until + span,
    starts = (
        SELECT '[' || COALESCE(group_concat(begun.at || ',' || begun.number), '') || ']'
        FROM (SELECT at, count(*) AS number FROM {gate_start} WHERE key = {gate}.name GROUP BY at ORDER BY at) AS begun
    );
DROP TABLE {gate_start};
