"""What other programs receive: the event log and webhooks."""
