-- name: state
-- Followers that begin now get the events of all transactions that still run.
SELECT s.keep, s.since, s.pruned_xid::text, s.pruned_to, pg_snapshot_xmin(pg_current_snapshot())::text,
       pg_snapshot_xmax(pg_current_snapshot())::text
FROM {event_switch} s;

-- name: read
-- Only transactions that are older than any running one: none of them can add an event any more.
SELECT e.xid::text, e.id, e.at, e.type, e.subject, e.kind, e.queue, e.tags, e.details FROM {event_log} e
WHERE (e.xid, e.id) > (%(xid)s::text::xid8, %(after)s::bigint) AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.xid, e.id LIMIT %(limit)s::bigint;

-- name: owner
-- The owner of the tables with the triggers; no row if it is this user.
SELECT pg_get_userbyid(c.relowner), current_user FROM pg_class c
WHERE c.oid IN ('{finished}'::regclass, '{fire}'::regclass) AND NOT pg_has_role(c.relowner, 'USAGE');

-- name: wait_briefly
-- A trigger waits for transactions that write, and others wait behind it: workers must not stand still for long.
SELECT set_config('lock_timeout', '5s', true);

-- name: switch_on
-- Events from before a pause of the log cannot be read: a follower would not notice the gap.
INSERT INTO {event_switch} AS s (one, keep, since, pruned_xid, pruned_to)
VALUES (1, %(keep)s::float8, coalesce(%(now)s::timestamptz, now()), pg_snapshot_xmin(pg_current_snapshot()), 0)
ON CONFLICT (one) DO UPDATE SET
    keep = excluded.keep,
    since = CASE WHEN s.keep IS NULL THEN excluded.since ELSE s.since END,
    pruned_xid = CASE WHEN s.keep IS NULL THEN excluded.pruned_xid ELSE s.pruned_xid END,
    pruned_to = CASE WHEN s.keep IS NULL THEN 0 ELSE s.pruned_to END;

-- name: switch_off
UPDATE {event_switch} SET keep = NULL;

-- name: log_ends
CREATE OR REPLACE TRIGGER log_ends AFTER INSERT ON {finished}
REFERENCING NEW TABLE AS ended FOR EACH STATEMENT EXECUTE FUNCTION {log_ends}();

-- name: log_missed
CREATE OR REPLACE TRIGGER log_missed AFTER INSERT ON {fire}
FOR EACH ROW WHEN (new.fate = 'missed') EXECUTE FUNCTION {log_missed}();

-- name: leave_ends
DROP TRIGGER IF EXISTS log_ends ON {finished};

-- name: leave_missed
DROP TRIGGER IF EXISTS log_missed ON {fire};

-- name: forget
-- While the log is off, all events have expired. Events that a follower could not have read yet stay.
WITH old AS (
    SELECT f.xid, f.id
    FROM (SELECT xid, id, at FROM {event_log} ORDER BY xid, id LIMIT %(limit)s::bigint) f, {event_switch} s
    WHERE f.xid < pg_snapshot_xmin(pg_current_snapshot())
      AND (s.keep IS NULL OR f.at <= coalesce(%(now)s::timestamptz, now()) - make_interval(secs => s.keep))
), gone AS (
    DELETE FROM {event_log} e USING old WHERE e.xid = old.xid AND e.id = old.id RETURNING e.xid, e.id
), last AS (
    SELECT xid, id FROM gone ORDER BY xid DESC, id DESC LIMIT 1
), noted AS (
    UPDATE {event_switch} s SET pruned_xid = last.xid, pruned_to = last.id
    FROM last WHERE (last.xid, last.id) > (s.pruned_xid, s.pruned_to)
)
SELECT count(*) FROM gone;
