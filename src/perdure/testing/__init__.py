"""Tools for testing code that enqueues or handles jobs."""
