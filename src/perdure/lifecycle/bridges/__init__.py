"""Calls between threads and event loops, and calls without an event loop."""
