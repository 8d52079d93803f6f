-- name: rules
-- Rules from code are left out once no worker has declared them for a while.
SELECT rule, source, created_at, changed_at, declared_at, paused_at, paused_until, paused_by
FROM {alert_rule} WHERE source = 'desk' OR declared_at > :declared_after ORDER BY name;

-- name: rule
SELECT rule, source, created_at, changed_at, declared_at, paused_at, paused_until, paused_by
FROM {alert_rule} WHERE name = :name AND (source = 'desk' OR declared_at > :declared_after);

-- name: save_rule
INSERT INTO {alert_rule} (name, rule, source, created_at, changed_at) VALUES (:name, :rule, 'desk', :now, :now)
ON CONFLICT (name) DO UPDATE SET
    rule = excluded.rule, source = 'desk', changed_at = :now, declared_at = NULL;

-- name: pause_rule
UPDATE {alert_rule} SET paused_at = :paused_at, paused_until = :until, paused_by = :paused_by WHERE name = :name;

-- name: delete_rule
DELETE FROM {alert_rule} WHERE name = :name;

-- name: declare_rule
INSERT INTO {alert_rule} (name, rule, source, created_at, changed_at, declared_at)
VALUES (:name, :rule, 'code', :now, :now, :now)
ON CONFLICT (name) DO UPDATE SET
    rule = excluded.rule, source = 'code', declared_at = :now,
    changed_at = CASE WHEN rule = excluded.rule AND source = 'code' THEN changed_at ELSE :now END;

-- name: channels
SELECT channel, source, created_at, changed_at, declared_at, sent_at, failed_at, error, failures
FROM {alert_channel} WHERE source = 'desk' OR declared_at > :declared_after ORDER BY name;

-- name: channel
SELECT channel, source, created_at, changed_at, declared_at, sent_at, failed_at, error, failures
FROM {alert_channel} WHERE name = :name AND (source = 'desk' OR declared_at > :declared_after);

-- name: save_channel
INSERT INTO {alert_channel} (name, channel, source, created_at, changed_at) VALUES (:name, :channel, 'desk', :now, :now)
ON CONFLICT (name) DO UPDATE SET
    channel = excluded.channel, source = 'desk', changed_at = :now, declared_at = NULL,
    failed_at = NULL, error = NULL, failures = 0;

-- name: delete_channel
DELETE FROM {alert_channel} WHERE name = :name;

-- name: declare_channel
INSERT INTO {alert_channel} (name, channel, source, created_at, changed_at, declared_at)
VALUES (:name, :channel, 'code', :now, :now, :now)
ON CONFLICT (name) DO UPDATE SET
    channel = excluded.channel, source = 'code', declared_at = :now,
    changed_at = CASE WHEN channel = excluded.channel AND source = 'code' THEN changed_at ELSE :now END;

-- name: declare_budget
INSERT INTO {budget_limit} (name, limits, declared_at) VALUES (:name, :limits, :now)
ON CONFLICT (name) DO UPDATE SET limits = excluded.limits, declared_at = :now;

-- name: budgets
SELECT name, limits FROM {budget_limit} WHERE declared_at > :declared_after ORDER BY name;
