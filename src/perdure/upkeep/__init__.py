"""Upkeep: one background loop per file, each a `tick()`."""
