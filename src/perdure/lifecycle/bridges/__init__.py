"""Between threads and event loops, and without one."""
