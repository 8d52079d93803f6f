"""Alerts: rules, what they have found, the notices about it, and the channels that carry them."""
