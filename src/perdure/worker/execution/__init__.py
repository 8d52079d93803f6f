"""Runs attempts: as tasks, in threads, in processes of their own."""
