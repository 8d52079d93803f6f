"""Threads with a connection of their own, and the short way beside them. Only SQLite needs them."""
