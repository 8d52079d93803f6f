-- release: 1
-- The limits that a kind declares (rates, slots, budgets, breakers), for a desk that has none of the app's code.
ALTER TABLE {kind} ADD COLUMN limits text;
