"""Alerts: rules, what they have found, the notices that say so, and the channels that carry them."""
