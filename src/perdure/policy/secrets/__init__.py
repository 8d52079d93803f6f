"""Secrets: the type that carries them, and how they are kept out of what people read."""
