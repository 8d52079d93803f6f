"""What keeps the house in order: one loop per file, each a `tick()`."""
