"""Pure decisions: no I/O, no clock, randomness passed in."""
