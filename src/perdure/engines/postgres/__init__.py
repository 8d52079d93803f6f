"""The engine across machines: PostgreSQL."""
