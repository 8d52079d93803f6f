"""Attempts in isolated processes: the pool and the parent on one side, the child on the other."""
