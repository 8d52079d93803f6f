"""How workers take jobs and give them back."""
