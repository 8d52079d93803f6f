"""Commands that run workers, list them and control them."""
