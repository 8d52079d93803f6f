"""Handlers of the API's routes, one file per resource."""
