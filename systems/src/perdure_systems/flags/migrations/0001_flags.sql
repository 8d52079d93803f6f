-- A flag, and every change of it. Schedules are jobs: they need no table here.
CREATE TABLE flag_flag (
    key text PRIMARY KEY,
    enabled boolean NOT NULL,
    rollout integer NOT NULL CHECK (rollout BETWEEN 0 AND 100),
    description text NOT NULL,
    version integer NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by text NOT NULL
);
CREATE TABLE flag_change (
    flag_key text NOT NULL,
    version integer NOT NULL,
    action text NOT NULL,
    enabled boolean NOT NULL,
    rollout integer NOT NULL,
    schedule_id text,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    PRIMARY KEY (flag_key, version)
);
CREATE INDEX flag_change_schedule ON flag_change (schedule_id) WHERE schedule_id IS NOT NULL;
