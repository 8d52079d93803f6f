"""From a call to a stored job: calls, handles, shared commits, and the wait for a result."""
