"""Records the ends of attempts in the database."""
