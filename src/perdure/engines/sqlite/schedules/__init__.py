"""Schedules, and the transaction in which they fire."""
