"""Alerts: evaluation of rules, and the operators' commands for rules and channels."""
