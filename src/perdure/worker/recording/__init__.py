"""What became of attempts, on its way to the database."""
