"""Steps, families, chains, events, and jobs that wait for them."""
