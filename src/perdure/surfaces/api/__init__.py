"""The HTTP API: every view and command of the desk, under /api/v1."""
