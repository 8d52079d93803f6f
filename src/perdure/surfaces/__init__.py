"""Thin skins over `operate`."""
