"""Enqueuing, draining, opening and closing, schedules and gates under load."""
