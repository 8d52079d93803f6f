"""A worker process: it claims, executes and acknowledges jobs, and sends heartbeats."""
