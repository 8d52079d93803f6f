"""The port for workers as a fleet: registration, leaders, upkeep, wake-ups."""
