"""Logging in with a token: page, rate limit, sessions, CSRF."""
