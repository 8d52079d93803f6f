CREATE TABLE perdure_access_key (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_access_session (
    digest TEXT PRIMARY KEY,
    token_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_access_session_expires ON perdure_access_session (expires_at);

CREATE INDEX perdure_access_session_token ON perdure_access_session (token_id);

CREATE TABLE perdure_access_token (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX perdure_access_token_name ON perdure_access_token (name) WHERE revoked_at IS NULL;

CREATE TABLE perdure_alert (
    id TEXT PRIMARY KEY,
    rule TEXT NOT NULL,
    key TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    is_live INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    alert TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX perdure_alert_live ON perdure_alert (rule, key) WHERE is_live;

CREATE INDEX perdure_alert_opened ON perdure_alert (opened_at, id);

CREATE TABLE perdure_alert_book (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    memory TEXT NOT NULL
) STRICT;

CREATE TABLE perdure_alert_channel (
    name TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    declared_at INTEGER,
    sent_at INTEGER,
    failed_at INTEGER,
    error TEXT,
    failures INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_alert_delivery (
    notice_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    job_id TEXT NOT NULL,
    state TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (notice_id, channel)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_alert_delivery_pending ON perdure_alert_delivery (changed_at) WHERE state = 'pending';

CREATE TABLE perdure_alert_notice (
    id TEXT PRIMARY KEY,
    rule TEXT,
    at INTEGER NOT NULL,
    notice TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_alert_notice_at ON perdure_alert_notice (at, id);

CREATE TABLE perdure_alert_rule (
    name TEXT PRIMARY KEY,
    rule TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    declared_at INTEGER,
    paused_at INTEGER,
    paused_until INTEGER,
    paused_by TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_attempt (
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    number INTEGER NOT NULL,
    reason TEXT NOT NULL,
    worker TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    error_type TEXT NOT NULL,
    message TEXT NOT NULL,
    traceback TEXT,
    next_at INTEGER, attempt_limit INTEGER, fingerprint TEXT, gates TEXT,
    PRIMARY KEY (job_id, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_attempt_fingerprint ON perdure_attempt (fingerprint, job_id) WHERE fingerprint IS NOT NULL;

CREATE TRIGGER perdure_audit_kept BEFORE DELETE ON perdure_audit WHEN NOT EXISTS (SELECT 1 FROM perdure_audit_retention AS r WHERE r.pruned_to >= old.at) BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only: only its retention deletes entries'); END;

CREATE TRIGGER perdure_audit_unchanged BEFORE UPDATE ON perdure_audit BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only: entries are never changed'); END;

CREATE TABLE perdure_audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    job_id TEXT NOT NULL,
    details TEXT NOT NULL
, why TEXT, source TEXT, jobs INTEGER, bulk_id TEXT) STRICT;

CREATE INDEX perdure_audit_action ON perdure_audit (action, at);

CREATE INDEX perdure_audit_actor ON perdure_audit (actor, at) WHERE actor <> 'system';

CREATE INDEX perdure_audit_at ON perdure_audit (at);

CREATE INDEX perdure_audit_bulk ON perdure_audit (bulk_id, at) WHERE bulk_id IS NOT NULL;

CREATE INDEX perdure_audit_job ON perdure_audit (job_id);

CREATE TABLE perdure_audit_retention (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    pruned_to INTEGER NOT NULL
) STRICT;

CREATE TABLE perdure_breaker (
    name TEXT PRIMARY KEY,
    view TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_budget_limit (
    name TEXT PRIMARY KEY,
    limits TEXT NOT NULL,
    declared_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_bulk (
    id TEXT PRIMARY KEY,
    action TEXT NOT NULL,
    filter TEXT NOT NULL,
    params TEXT NOT NULL,
    actor TEXT NOT NULL,
    why TEXT,
    source TEXT,
    state TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    capped INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    done INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    finished_at INTEGER,
    error TEXT,
    outcome TEXT NOT NULL,
    cursor TEXT,
    token INTEGER NOT NULL,
    runner TEXT,
    leased_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_bulk_created ON perdure_bulk (created_at);

CREATE INDEX perdure_bulk_running ON perdure_bulk (created_at) WHERE state = 'running';

CREATE TABLE perdure_child (
    parent_id TEXT NOT NULL,
    family TEXT NOT NULL,
    number INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    fate TEXT,
    result TEXT,
    error TEXT, warnings TEXT,
    PRIMARY KEY (parent_id, family, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX perdure_child_job ON perdure_child (job_id);

CREATE TABLE perdure_counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_event (
    name TEXT PRIMARY KEY,
    payload TEXT,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_event_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    kind TEXT,
    queue TEXT,
    tags TEXT,
    details TEXT NOT NULL
) STRICT;

CREATE TABLE perdure_event_switch (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    keep INTEGER,
    since INTEGER NOT NULL,
    pruned_to INTEGER NOT NULL
) STRICT;

CREATE TABLE perdure_failure_count (
    fingerprint TEXT NOT NULL,
    hour INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, hour)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_failure_count_hour ON perdure_failure_count (hour);

CREATE TABLE perdure_failure_group (
    fingerprint TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    error_type TEXT NOT NULL,
    message TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_family (
    parent_id TEXT NOT NULL,
    key TEXT NOT NULL,
    turn INTEGER NOT NULL,
    total INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    quorum INTEGER,
    on_end TEXT NOT NULL,
    created_at INTEGER NOT NULL, next_link INTEGER,
    PRIMARY KEY (parent_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_finished (
    job_id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    note TEXT,
    started_at INTEGER,
    finished_at INTEGER NOT NULL,
    worker TEXT,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    result TEXT,
    warnings TEXT
, cancelled_by TEXT, kept_as TEXT, fingerprint TEXT, gates TEXT) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_finished_cancelled ON perdure_finished (job_id) WHERE state = 'cancelled';

CREATE INDEX perdure_finished_dead ON perdure_finished (job_id) WHERE state = 'dead';

CREATE INDEX perdure_finished_fingerprint ON perdure_finished (fingerprint, job_id) WHERE state = 'dead' AND fingerprint IS NOT NULL;

CREATE INDEX perdure_finished_kept ON perdure_finished (kept_as, state, finished_at) WHERE kept_as IS NOT NULL;

CREATE INDEX perdure_finished_standing ON perdure_finished (state, queue, finished_at);

CREATE INDEX perdure_finished_unprinted ON perdure_finished (job_id) WHERE state = 'dead' AND fingerprint IS NULL;

CREATE TABLE perdure_fire (
    schedule TEXT NOT NULL,
    nominal_at INTEGER NOT NULL,
    fate TEXT NOT NULL,
    cause TEXT NOT NULL,
    at INTEGER NOT NULL,
    job_id TEXT,
    PRIMARY KEY (schedule, nominal_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_fire_missed ON perdure_fire (at) WHERE fate = 'missed';

CREATE INDEX perdure_fire_nominal ON perdure_fire (nominal_at);

CREATE TABLE perdure_gate (
    name TEXT PRIMARY KEY,
    span INTEGER NOT NULL,
    until INTEGER NOT NULL
, starts TEXT NOT NULL DEFAULT '[]') STRICT, WITHOUT ROWID;

CREATE INDEX perdure_gate_until ON perdure_gate (until);

CREATE TABLE perdure_gate_hold (
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    PRIMARY KEY (key, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_gate_loan (
    key TEXT NOT NULL,
    span INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (key, span, worker_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_gate_loan_worker ON perdure_gate_loan (worker_id);

CREATE TABLE perdure_gate_place (
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL, given_at INTEGER,
    PRIMARY KEY (key, job_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_gate_place_at ON perdure_gate_place (key, at);

CREATE INDEX perdure_gate_place_until ON perdure_gate_place (until);

CREATE TABLE perdure_gate_wait (
    turn INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    size INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX perdure_gate_wait_job ON perdure_gate_wait (key, job_id);

CREATE INDEX perdure_gate_wait_turn ON perdure_gate_wait (key, turn);

CREATE TABLE perdure_job (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    args TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER,
    max_attempts INTEGER,
    crash_limit INTEGER NOT NULL,
    unknown_since INTEGER, -- no handler was found
    unique_key TEXT,
    unique_states TEXT,
    unique_dead_for INTEGER,
    tags TEXT,
    meta TEXT,
    turn INTEGER NOT NULL
, cursor TEXT, parent_id TEXT, is_parent INTEGER NOT NULL DEFAULT 0, fair_key TEXT, gates_passed TEXT, settings TEXT, ref TEXT, mark TEXT, gates TEXT) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_job_mark ON perdure_job (mark, id) WHERE mark IS NOT NULL;

CREATE UNIQUE INDEX perdure_job_ref ON perdure_job (ref) WHERE ref IS NOT NULL;

CREATE TABLE perdure_joined (
    child_id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    is_open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_joined_job ON perdure_joined (job_id);

CREATE INDEX perdure_joined_open ON perdure_joined (child_id) WHERE is_open = 1;

CREATE TABLE perdure_kind (
    name TEXT PRIMARY KEY,
    words TEXT,
    keep TEXT,
    changed_at INTEGER NOT NULL
, limits TEXT) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_leader (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_lease (
    job_id TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    queue TEXT NOT NULL,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    cancel_at INTEGER,
    cancel_why TEXT
, cancel_by TEXT) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_lease_cancel ON perdure_lease (worker_id) WHERE cancel_at IS NOT NULL;

CREATE TABLE perdure_line (
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    release INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE perdure_parked (
    job_id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    note TEXT,
    due_at INTEGER,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    parked_at INTEGER NOT NULL
, awaits TEXT, also_awaits TEXT, turn INTEGER) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_parked_breaker ON perdure_parked (job_id) WHERE reason = 'circuit breaker open';

CREATE INDEX perdure_parked_due ON perdure_parked (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX perdure_parked_key_held ON perdure_parked (since, job_id) WHERE reason = 'unique key held by another job';

CREATE INDEX perdure_parked_on_hold ON perdure_parked (job_id) WHERE reason = 'on hold';

CREATE INDEX perdure_parked_return ON perdure_parked (queue, due_at) WHERE state = 'retrying' AND reason = 'process crashed';

CREATE INDEX perdure_parked_standing ON perdure_parked (state, queue);

CREATE TABLE perdure_pause (
    id TEXT PRIMARY KEY,
    queue TEXT,
    kind TEXT,
    args TEXT,
    until INTEGER,
    why TEXT,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_plan (
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_progress (
    job_id TEXT PRIMARY KEY,
    current REAL NOT NULL,
    total REAL,
    note TEXT,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_ready (
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    reason TEXT NOT NULL, fair_key TEXT, due_at INTEGER,
    PRIMARY KEY (queue, priority, turn, job_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_ready_fair ON perdure_ready (queue, priority, fair_key, turn) WHERE fair_key IS NOT NULL;

CREATE TABLE perdure_revoked (
    worker_id INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    why TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (worker_id, job_id, token)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_schedule (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    origin TEXT NOT NULL,
    version INTEGER NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    last_job_id TEXT,
    paused_at INTEGER,
    paused_until INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    declared_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_schedule_next ON perdure_schedule (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE perdure_spend (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    amount REAL NOT NULL,
    job_id TEXT NOT NULL,
    is_estimate INTEGER NOT NULL
, summed_at INTEGER, summed_amount REAL) STRICT;

CREATE INDEX perdure_spend_changed ON perdure_spend (name, summed_at)
WHERE summed_at IS NOT NULL AND (summed_at IS NOT at OR summed_amount IS NOT amount);

CREATE UNIQUE INDEX perdure_spend_estimate ON perdure_spend (name, job_id) WHERE is_estimate = 1;

CREATE INDEX perdure_spend_job ON perdure_spend (job_id, name);

CREATE INDEX perdure_spend_name ON perdure_spend (name, at);

CREATE INDEX perdure_spend_unsummed ON perdure_spend (name, at) WHERE summed_at IS NOT at OR summed_amount IS NOT amount;

CREATE TABLE perdure_spend_sum (
    name TEXT NOT NULL,
    span INTEGER NOT NULL,
    at INTEGER NOT NULL,
    amount REAL NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (name, span, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_statistic (
    span INTEGER NOT NULL,
    facet TEXT NOT NULL,
    at INTEGER NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    ending TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    waited REAL NOT NULL,
    ran REAL NOT NULL,
    wait_0 INTEGER NOT NULL, wait_1 INTEGER NOT NULL, wait_2 INTEGER NOT NULL, wait_3 INTEGER NOT NULL,
    wait_4 INTEGER NOT NULL, wait_5 INTEGER NOT NULL, wait_6 INTEGER NOT NULL, wait_7 INTEGER NOT NULL,
    wait_8 INTEGER NOT NULL, wait_9 INTEGER NOT NULL, wait_10 INTEGER NOT NULL, wait_11 INTEGER NOT NULL,
    wait_12 INTEGER NOT NULL, wait_13 INTEGER NOT NULL, wait_14 INTEGER NOT NULL, wait_15 INTEGER NOT NULL,
    wait_16 INTEGER NOT NULL, wait_17 INTEGER NOT NULL, wait_18 INTEGER NOT NULL, wait_19 INTEGER NOT NULL,
    wait_20 INTEGER NOT NULL, wait_21 INTEGER NOT NULL, wait_22 INTEGER NOT NULL, wait_23 INTEGER NOT NULL,
    wait_24 INTEGER NOT NULL, wait_25 INTEGER NOT NULL, run_0 INTEGER NOT NULL, run_1 INTEGER NOT NULL,
    run_2 INTEGER NOT NULL, run_3 INTEGER NOT NULL, run_4 INTEGER NOT NULL, run_5 INTEGER NOT NULL,
    run_6 INTEGER NOT NULL, run_7 INTEGER NOT NULL, run_8 INTEGER NOT NULL, run_9 INTEGER NOT NULL,
    run_10 INTEGER NOT NULL, run_11 INTEGER NOT NULL, run_12 INTEGER NOT NULL, run_13 INTEGER NOT NULL,
    run_14 INTEGER NOT NULL, run_15 INTEGER NOT NULL, run_16 INTEGER NOT NULL, run_17 INTEGER NOT NULL,
    run_18 INTEGER NOT NULL, run_19 INTEGER NOT NULL, run_20 INTEGER NOT NULL, run_21 INTEGER NOT NULL,
    run_22 INTEGER NOT NULL, run_23 INTEGER NOT NULL, run_24 INTEGER NOT NULL, run_25 INTEGER NOT NULL,
    PRIMARY KEY (span, facet, at, queue, kind, ending)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_statistic_part (
    at INTEGER NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    ending TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    waited REAL NOT NULL,
    ran REAL NOT NULL,
    wait_0 INTEGER NOT NULL, wait_1 INTEGER NOT NULL, wait_2 INTEGER NOT NULL, wait_3 INTEGER NOT NULL,
    wait_4 INTEGER NOT NULL, wait_5 INTEGER NOT NULL, wait_6 INTEGER NOT NULL, wait_7 INTEGER NOT NULL,
    wait_8 INTEGER NOT NULL, wait_9 INTEGER NOT NULL, wait_10 INTEGER NOT NULL, wait_11 INTEGER NOT NULL,
    wait_12 INTEGER NOT NULL, wait_13 INTEGER NOT NULL, wait_14 INTEGER NOT NULL, wait_15 INTEGER NOT NULL,
    wait_16 INTEGER NOT NULL, wait_17 INTEGER NOT NULL, wait_18 INTEGER NOT NULL, wait_19 INTEGER NOT NULL,
    wait_20 INTEGER NOT NULL, wait_21 INTEGER NOT NULL, wait_22 INTEGER NOT NULL, wait_23 INTEGER NOT NULL,
    wait_24 INTEGER NOT NULL, wait_25 INTEGER NOT NULL, run_0 INTEGER NOT NULL, run_1 INTEGER NOT NULL,
    run_2 INTEGER NOT NULL, run_3 INTEGER NOT NULL, run_4 INTEGER NOT NULL, run_5 INTEGER NOT NULL,
    run_6 INTEGER NOT NULL, run_7 INTEGER NOT NULL, run_8 INTEGER NOT NULL, run_9 INTEGER NOT NULL,
    run_10 INTEGER NOT NULL, run_11 INTEGER NOT NULL, run_12 INTEGER NOT NULL, run_13 INTEGER NOT NULL,
    run_14 INTEGER NOT NULL, run_15 INTEGER NOT NULL, run_16 INTEGER NOT NULL, run_17 INTEGER NOT NULL,
    run_18 INTEGER NOT NULL, run_19 INTEGER NOT NULL, run_20 INTEGER NOT NULL, run_21 INTEGER NOT NULL,
    run_22 INTEGER NOT NULL, run_23 INTEGER NOT NULL, run_24 INTEGER NOT NULL, run_25 INTEGER NOT NULL,
    PRIMARY KEY (at, queue, kind, ending)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_statistic_total (
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    ending TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    waited REAL NOT NULL,
    ran REAL NOT NULL,
    wait_0 INTEGER NOT NULL, wait_1 INTEGER NOT NULL, wait_2 INTEGER NOT NULL, wait_3 INTEGER NOT NULL,
    wait_4 INTEGER NOT NULL, wait_5 INTEGER NOT NULL, wait_6 INTEGER NOT NULL, wait_7 INTEGER NOT NULL,
    wait_8 INTEGER NOT NULL, wait_9 INTEGER NOT NULL, wait_10 INTEGER NOT NULL, wait_11 INTEGER NOT NULL,
    wait_12 INTEGER NOT NULL, wait_13 INTEGER NOT NULL, wait_14 INTEGER NOT NULL, wait_15 INTEGER NOT NULL,
    wait_16 INTEGER NOT NULL, wait_17 INTEGER NOT NULL, wait_18 INTEGER NOT NULL, wait_19 INTEGER NOT NULL,
    wait_20 INTEGER NOT NULL, wait_21 INTEGER NOT NULL, wait_22 INTEGER NOT NULL, wait_23 INTEGER NOT NULL,
    wait_24 INTEGER NOT NULL, wait_25 INTEGER NOT NULL, run_0 INTEGER NOT NULL, run_1 INTEGER NOT NULL,
    run_2 INTEGER NOT NULL, run_3 INTEGER NOT NULL, run_4 INTEGER NOT NULL, run_5 INTEGER NOT NULL,
    run_6 INTEGER NOT NULL, run_7 INTEGER NOT NULL, run_8 INTEGER NOT NULL, run_9 INTEGER NOT NULL,
    run_10 INTEGER NOT NULL, run_11 INTEGER NOT NULL, run_12 INTEGER NOT NULL, run_13 INTEGER NOT NULL,
    run_14 INTEGER NOT NULL, run_15 INTEGER NOT NULL, run_16 INTEGER NOT NULL, run_17 INTEGER NOT NULL,
    run_18 INTEGER NOT NULL, run_19 INTEGER NOT NULL, run_20 INTEGER NOT NULL, run_21 INTEGER NOT NULL,
    run_22 INTEGER NOT NULL, run_23 INTEGER NOT NULL, run_24 INTEGER NOT NULL, run_25 INTEGER NOT NULL,
    PRIMARY KEY (queue, kind, ending)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_statistic_writer (
    writer TEXT PRIMARY KEY,
    flush INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_step (
    job_id TEXT NOT NULL,
    key TEXT NOT NULL,
    turn INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    result TEXT,
    note TEXT,
    tries INTEGER NOT NULL,
    due_at INTEGER,
    begun_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_throttle (
    key TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_throttle_until ON perdure_throttle (until);

CREATE TABLE perdure_unique_hold (
    key TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_waiter (
    event TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (event, job_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX perdure_waiter_job ON perdure_waiter (job_id);

CREATE TABLE perdure_webhook (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    secret TEXT,
    cursor TEXT NOT NULL,
    paused_at INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_worker (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started INTEGER NOT NULL,
    queues TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    dead_at INTEGER
, phase TEXT NOT NULL DEFAULT 'open', quiet_at INTEGER) STRICT;
