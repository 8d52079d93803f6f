"""Sends a finished audit to its webhook."""
