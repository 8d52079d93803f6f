"""Pure decisions: no I/O, no clock, randomness handed in."""
