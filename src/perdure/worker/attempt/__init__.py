"""One attempt: its context, the services behind the context, and its outcome."""
