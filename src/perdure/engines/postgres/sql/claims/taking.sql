-- name: take_picked
-- The part `take_picked` of each statement that claims jobs. It follows `picked`: locked rows of `ready`, which become
-- leases. The last column of a row is NULL, or the sum of: 1, the job has a fair key; 2, it had come back; 4, these
-- queues have jobs that came back. The sequence goes up by 2^20; the numbers between are drawn at random, because a
-- promoted standby or a restored backup repeats numbers of the sequence.
gone AS (
    DELETE FROM {ready} WHERE ctid = ANY (ARRAY(SELECT ctid FROM picked))
), batch AS MATERIALIZED (
    SELECT nextval('{claim_token}') + floor(random() * {TOKENS_PER_MS})::bigint AS token,
           coalesce(%(now)s::timestamptz, now()) AS now
), held AS (
    INSERT INTO {lease} (job_id, token, worker_id, queue, priority, failures, crashes, since, claimed_at, seq)
    SELECT p.job_id, b.token, %(worker)s::bigint, p.queue, p.priority, p.failures, p.crashes, p.since, b.now, p.seq
    FROM picked p CROSS JOIN batch b
)
SELECT p.job_id::text, b.token, j.kind, p.queue, j.args, p.failures, p.crashes, j.crash_limit, p.since, b.now,
       j.unique_key, j.unique_states, j.unique_dead_for, j.tags, j.meta, j.unknown_since, j.cursor,
       j.parent_id::text, j.is_parent, p.reason IS NULL, j.gates_passed, j.settings, j.ref, p.due_at, j.gates,
       p.priority, p.seq, nullif(
           CASE WHEN p.fair_key IS NULL THEN 0 ELSE 1 END
           + CASE WHEN p.reason IS NULL OR p.reason = {REASON_REQUEUED} THEN 0 ELSE 2 END
           + CASE WHEN EXISTS (
                 SELECT FROM {ready} b WHERE b.queue || '' = ANY (%(queues)s::text[])
                 AND b.reason IS NOT NULL AND b.reason <> {REASON_REQUEUED}
             ) THEN 4 ELSE 0 END, 0)
FROM picked p CROSS JOIN batch b
CROSS JOIN LATERAL (
    SELECT kind, args, crash_limit, unique_key, unique_states, unique_dead_for, tags, meta, unknown_since, cursor,
           parent_id, is_parent, gates_passed, settings, ref, gates
    FROM {job} WHERE id = p.job_id OFFSET 0
) j;
