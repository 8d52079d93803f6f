-- A certificate that an authority has issued. The order itself is a job; order_id is its ref.
CREATE TABLE authority_certificate (
    order_id text PRIMARY KEY,
    authority text NOT NULL,
    authority_order text NOT NULL,
    serial text NOT NULL,
    subject text NOT NULL,
    issuer text NOT NULL,
    names text NOT NULL,
    not_before timestamptz NOT NULL,
    not_after timestamptz NOT NULL,
    fingerprint text NOT NULL,
    chain text NOT NULL,
    collected_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoke_reason text
);
CREATE INDEX authority_certificate_not_after ON authority_certificate (not_after) WHERE revoked_at IS NULL;
