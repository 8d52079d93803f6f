"""Webhooks: which events are sent to which receivers."""
