"""Values and the state machine: no I/O, no clock."""
