"""The databases: each engine implements the whole port, and only engines write."""
