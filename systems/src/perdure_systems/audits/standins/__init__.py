"""The outside world, on this machine, for tests and the demo."""
