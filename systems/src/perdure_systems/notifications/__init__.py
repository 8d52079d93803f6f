"""Notifications: six channels, retries with a plan, dead letters that an operator requeues."""
