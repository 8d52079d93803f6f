"""Intake: stores new jobs."""
