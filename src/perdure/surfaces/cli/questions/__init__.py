"""Commands that answer what jobs wait for: approvals and events."""
