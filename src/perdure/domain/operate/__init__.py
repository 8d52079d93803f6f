"""What operators use: access scopes, the audit trail, search conditions, statistics."""
