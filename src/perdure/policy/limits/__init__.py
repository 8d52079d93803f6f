"""Rates, slots, budgets, breakers and pauses: which job may run now, and what the others wait for."""
