-- Requests that met another one for the same page while they were under way.
CREATE TABLE audit_race (
    id text PRIMARY KEY,
    audit_id text NOT NULL,
    url text NOT NULL,
    strategy text NOT NULL,
    raced_at timestamptz NOT NULL
);
CREATE INDEX audit_race_by_time ON audit_race (raced_at);
