"""Who may use the desk and the API over HTTP: one ASGI middleware in front of both."""
