"""From the database to this worker: capacity, the fetcher, quarantine, and how a worker takes up work."""
