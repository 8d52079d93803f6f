"""The public API: the app, its declarations, and how it finds its database."""
