"""Heartbeats of a worker, its phase and snapshot, and the requests of operators."""
