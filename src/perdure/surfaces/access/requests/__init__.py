"""Checks of a request before it is handled: host, origin, size; and the headers of its answer."""
