"""The context of an attempt: what its handler can call."""
