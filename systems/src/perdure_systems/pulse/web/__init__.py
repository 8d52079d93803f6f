"""Pulse over HTTP: its API, its pages, and what they show."""
