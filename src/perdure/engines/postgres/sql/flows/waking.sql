-- name: held
-- Jobs held for this reason whose note begins in one of these ways, in the order of their ids, beyond `after`.
SELECT p.job_id::text FROM {parked} p
WHERE p.reason IN ({REASON_BREAKER_OPEN}, {REASON_ON_HOLD}) AND p.reason = %(reason)s::text
  AND p.job_id > %(after)s::uuid AND EXISTS (
      SELECT FROM unnest(%(openings)s::text[]) AS o (opening) WHERE starts_with(p.note || ' ', o.opening)
  )
ORDER BY p.job_id LIMIT %(limit)s::int;

-- name: wake
-- Paused jobs become ready, in this order, unless they are held for another reason by now. A job that must hold its
-- unique key and cannot get it waits for the key; so does a job whose record has lost its key, which the promoter
-- reports.
WITH chosen AS MATERIALIZED (
    SELECT i.place, p.job_id, p.queue, p.priority, p.failures, p.crashes, p.since, p.seq, j.fair_key,
           sha256(convert_to(j.unique_key, 'UTF8')) AS hold,
           coalesce('ready' = ANY (string_to_array(j.unique_states, ',')), false) AS wanted
    FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS i (id, place)
    CROSS JOIN LATERAL (SELECT * FROM {parked} WHERE job_id = i.id FOR UPDATE SKIP LOCKED) p
    CROSS JOIN LATERAL (SELECT unique_key, unique_states, fair_key FROM {job} WHERE id = i.id OFFSET 0) j
    WHERE p.state = 'paused' AND p.reason = %(held_for)s::text
), freed AS (
    DELETE FROM {unique_hold} h USING chosen c WHERE NOT c.wanted AND h.key = c.hold AND h.job_id = c.job_id
), held AS (
    INSERT INTO {unique_hold} AS h (key, job_id)
    SELECT DISTINCT ON (c.hold) c.hold, c.job_id
    FROM chosen c LEFT JOIN {unique_hold} o ON o.key = c.hold AND o.job_id = c.job_id
    WHERE c.wanted AND c.hold IS NOT NULL ORDER BY c.hold, o.job_id IS NULL, c.job_id
    ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = NULL
        WHERE h.job_id = excluded.job_id OR h.expires_at <= coalesce(%(now)s::timestamptz, now())
    RETURNING job_id
), granted AS MATERIALIZED (
    SELECT * FROM chosen WHERE NOT wanted OR job_id IN (SELECT job_id FROM held)
), postponed AS (
    UPDATE {parked} SET state = 'paused', reason = %(key_held)s::text,
        due_at = coalesce(%(now)s::timestamptz, now()) + {HELD_KEY_WAIT}
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM chosen WHERE job_id NOT IN (SELECT job_id FROM granted)))
), gone AS (
    DELETE FROM {parked} WHERE job_id = ANY (ARRAY(SELECT job_id FROM granted))
), entering AS MATERIALIZED (
    SELECT queue, priority, job_id, failures, crashes, least(since, coalesce(%(now)s::timestamptz, now())) AS since,
           {REASON_RESUMED} AS reason, fair_key, place, seq, coalesce(%(now)s::timestamptz, now()) AS due_at
    FROM granted
), {line_up}
SELECT queue, count(*) FROM granted GROUP BY queue;
