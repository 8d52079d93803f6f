"""Commands that serve the web desk and the HTTP API."""
