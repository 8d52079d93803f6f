"""Checks of the database, workers, queues and schedules."""
