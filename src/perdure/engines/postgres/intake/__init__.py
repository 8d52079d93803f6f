"""Where jobs come in."""
