-- name: rules
-- Rules from code are left out once no worker has declared them for a while.
SELECT rule, source, created_at, changed_at, declared_at, paused_at, paused_until, paused_by
FROM {alert_rule} WHERE source = 'desk' OR declared_at > coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8) ORDER BY name;

-- name: rule
SELECT rule, source, created_at, changed_at, declared_at, paused_at, paused_until, paused_by
FROM {alert_rule} WHERE name = %(name)s::text AND (source = 'desk' OR declared_at > coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8));

-- name: save_rule
INSERT INTO {alert_rule} (name, rule, source, created_at, changed_at) VALUES (%(name)s::text, %(rule)s::text, 'desk',
    coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (name) DO UPDATE SET
    rule = excluded.rule, source = 'desk', changed_at = coalesce(%(now)s::timestamptz, now()), declared_at = NULL;

-- name: pause_rule
UPDATE {alert_rule} SET paused_at = CASE WHEN %(paused)s::boolean THEN coalesce(%(now)s::timestamptz, now()) END,
    paused_until = %(until)s::timestamptz, paused_by = %(paused_by)s::text WHERE name = %(name)s::text;

-- name: delete_rule
DELETE FROM {alert_rule} WHERE name = %(name)s::text RETURNING coalesce(%(now)s::timestamptz, now());

-- name: declare_rule
INSERT INTO {alert_rule} AS kept (name, rule, source, created_at, changed_at, declared_at)
VALUES (%(name)s::text, %(rule)s::text, 'code', coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz,
    now()), coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (name) DO UPDATE SET
    rule = excluded.rule, source = 'code', declared_at = coalesce(%(now)s::timestamptz, now()),
    changed_at = CASE WHEN kept.rule = excluded.rule AND kept.source = 'code' THEN kept.changed_at
    ELSE coalesce(%(now)s::timestamptz, now()) END;

-- name: channels
SELECT channel, source, created_at, changed_at, declared_at, sent_at, failed_at, error, failures
FROM {alert_channel} WHERE source = 'desk' OR declared_at > coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8) ORDER BY name;

-- name: channel
SELECT channel, source, created_at, changed_at, declared_at, sent_at, failed_at, error, failures
FROM {alert_channel} WHERE name = %(name)s::text AND (source = 'desk' OR declared_at > coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8));

-- name: save_channel
INSERT INTO {alert_channel} (name, channel, source, created_at, changed_at) VALUES (%(name)s::text,
    %(channel)s::text, 'desk', coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (name) DO UPDATE SET
    channel = excluded.channel, source = 'desk', changed_at = coalesce(%(now)s::timestamptz, now()),
    declared_at = NULL,
    failed_at = NULL, error = NULL, failures = 0;

-- name: delete_channel
DELETE FROM {alert_channel} WHERE name = %(name)s::text;

-- name: declare_channel
INSERT INTO {alert_channel} AS kept (name, channel, source, created_at, changed_at, declared_at)
VALUES (%(name)s::text, %(channel)s::text, 'code', coalesce(%(now)s::timestamptz, now()),
    coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (name) DO UPDATE SET
    channel = excluded.channel, source = 'code', declared_at = coalesce(%(now)s::timestamptz, now()),
    changed_at = CASE WHEN kept.channel = excluded.channel AND kept.source = 'code' THEN kept.changed_at
    ELSE coalesce(%(now)s::timestamptz, now()) END;

-- name: declare_budget
INSERT INTO {budget_limit} (name, limits, declared_at) VALUES (%(name)s::text, %(limits)s::text,
    coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (name) DO UPDATE SET limits = excluded.limits, declared_at = coalesce(%(now)s::timestamptz, now());

-- name: budgets
SELECT name, limits FROM {budget_limit} WHERE declared_at > coalesce(%(now)s::timestamptz,
    now()) - make_interval(secs => %(kept)s::float8) ORDER BY name;
