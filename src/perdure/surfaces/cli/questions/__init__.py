"""Commands for jobs that wait for approvals and events."""
