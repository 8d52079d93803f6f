"""Certificates over HTTP: the API and the pages."""
