"""What all systems share: their own tables, settings from the environment, an HTTP API, pages, and one way to run."""
