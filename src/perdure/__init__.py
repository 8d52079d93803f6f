"""perdure: durable jobs for Python, on SQLite and PostgreSQL."""
