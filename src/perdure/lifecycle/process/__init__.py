"""The process itself: identity, signals, exits, supervision, stacks and the watchdog."""
