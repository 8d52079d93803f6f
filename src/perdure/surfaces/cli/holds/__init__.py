"""Commands for pauses, breakers and spending."""
