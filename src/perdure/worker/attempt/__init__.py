"""One attempt: its context, what the context offers to the handler, and what becomes of it."""
