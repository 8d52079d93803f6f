-- release: 1
-- The log of events that other programs follow, and the webhooks that tell of them. Triggers on {finished} and {fire}
-- write the log; they exist only while it is switched on, so that it costs nothing otherwise. An event keeps the id of its
-- transaction: events are read in that order, and only those of transactions that are older than any running one, so that
-- no event appears behind a cursor.
CREATE TABLE {event_log} (
    xid xid8 NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    kind text,
    queue text,
    tags text[],
    details text NOT NULL,
    PRIMARY KEY (xid, id)
);
CREATE TABLE {event_switch} (
    one integer PRIMARY KEY CHECK (one = 1),
    keep double precision,
    since timestamptz NOT NULL,
    pruned_xid xid8 NOT NULL,
    pruned_to bigint NOT NULL
);
CREATE TABLE {webhook} (
    name text COLLATE "C" PRIMARY KEY,
    definition text NOT NULL,
    secret text,
    cursor text NOT NULL,
    paused_at timestamptz,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL
);
CREATE FUNCTION {log_ends}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {event_log} (xid, at, type, subject, kind, queue, tags, details)
    SELECT pg_current_xact_id(), e.finished_at, CASE e.state WHEN 'dead' THEN 'job.died' ELSE 'job.' || e.state END,
           e.job_id::text, j.kind, e.queue, j.tags,
           json_strip_nulls(json_build_object(
               'reason', e.reason, 'note', e.note, 'failures', e.failures, 'crashes', e.crashes, 'worker', e.worker,
               'started_at', e.started_at, 'error_type', a.error_type, 'error', a.message,
               'fingerprint', e.fingerprint))::text
    FROM ended e
    CROSS JOIN LATERAL (SELECT kind, tags FROM {job} WHERE id = e.job_id OFFSET 0) j
    LEFT JOIN LATERAL (
        SELECT error_type, message FROM {attempt}
        WHERE e.state = 'dead' AND job_id = e.job_id ORDER BY token DESC LIMIT 1
    ) a ON true;
    RETURN NULL;
END
$$;
CREATE FUNCTION {log_missed}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {event_log} (xid, at, type, subject, kind, queue, details)
    SELECT pg_current_xact_id(), new.at, 'schedule.missed', new.schedule, s.definition::json ->> 'kind',
           s.definition::json ->> 'queue', json_build_object('nominal_at', new.nominal_at)::text
    FROM {schedule} s WHERE s.name = new.schedule;
    RETURN NULL;
END
$$;
