"""Events for other programs: the event log and webhooks."""
