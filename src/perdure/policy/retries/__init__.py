"""How often and how soon a failed job is retried: retry, backoff, jitter, triage."""
