"""A worker process: it claims, executes, acknowledges, and shows that it lives."""
