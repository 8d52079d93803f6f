"""What every benchmark shares: servers, environments, measuring and reporting.

The modules `ledger`, `measure`, `contestant`, `databases`, `phases` and `contest` need
nothing but the standard library (and psycopg where PostgreSQL is involved), because they
also run inside the environments of the peers.
"""
