"""Bulk commands: one action on all jobs that match a filter, planned, confirmed, and done in batches."""
