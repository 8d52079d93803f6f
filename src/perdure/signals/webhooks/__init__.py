"""Signed HTTP requests that report events to receivers."""
