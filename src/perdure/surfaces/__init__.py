"""The surfaces: thin layers over `operate`."""
