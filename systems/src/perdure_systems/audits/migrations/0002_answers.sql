-- What the receiver has answered.
ALTER TABLE audit_delivery ADD COLUMN status_code integer;
ALTER TABLE audit_delivery ADD COLUMN seconds double precision;
ALTER TABLE audit_delivery ADD COLUMN error text;
