"""What stands between a claim and its start: pauses, gates, breakers, and what a worker was lent of them."""
