"""Gates, breakers, budgets, loans and pauses."""
