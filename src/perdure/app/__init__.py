"""The public face: the app, what it declares, and how it finds its database."""
