"""Runs attempts: as tasks, in threads, in isolated processes."""
