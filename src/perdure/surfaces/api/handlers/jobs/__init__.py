"""Routes about jobs: lists, commands, bulk commands, failures, approvals and events."""
