"""Site audits: measure a page, photograph it, print a report, and tell a webhook, keeping each step that is done."""
