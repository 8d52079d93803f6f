"""Deliveries of alerts: the kind of job that carries a notice through a channel, and the channels."""
