"""Alerts: rules, channels, alerts and notices."""
