-- One row for each request that a webhook's receiver was sent, or may have been sent. `token` is that of the claim.
CREATE TABLE audit_delivery (
    webhook_id text NOT NULL,
    token bigint NOT NULL,
    audit_id text NOT NULL,
    url text NOT NULL,
    attempt integer NOT NULL,
    status text NOT NULL,
    sent_at timestamptz NOT NULL,
    PRIMARY KEY (webhook_id, token)
);
CREATE INDEX audit_delivery_by_audit ON audit_delivery (audit_id, sent_at);
CREATE INDEX audit_delivery_by_time ON audit_delivery (sent_at);
