"""Pages about jobs: the list, one job, dead letters, flows, approvals, bulk commands."""
