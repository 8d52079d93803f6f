"""Alerts: open ones, rules, channels and sent notices."""
