"""What operators see: jobs, counts, failure groups, kinds, statistics, the audit trail."""
