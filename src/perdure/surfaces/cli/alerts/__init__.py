"""Rules, channels and history of alerts."""
