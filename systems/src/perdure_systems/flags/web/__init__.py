"""Flags over HTTP: the API, the pages and their forms, and who may use them."""
