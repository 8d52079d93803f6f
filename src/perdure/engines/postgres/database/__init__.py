"""Connections, sessions, schema, and values on the wire."""
