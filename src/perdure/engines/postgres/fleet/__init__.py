"""Workers, leaders, wake-ups and upkeep."""
