"""Attempts in processes of their own: the pool and the parent on one side, the child on the other."""
