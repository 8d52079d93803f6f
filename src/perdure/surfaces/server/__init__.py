"""The HTTP server that API and web desk share."""
