"""How a worker shows that it lives, what it is doing, and what operators ask of it."""
