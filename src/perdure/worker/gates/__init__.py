"""The checks between a claim and its start: pauses, gates, breakers, and the worker's loans of gates."""
