"""Flows: steps, waits, children, planned jobs and approvals."""
