"""From a call to a stored job: calls, handles, group commit, and waiting for a result."""
