"""Children, chains and batches: jobs that a job spawns and waits for."""
