"""What perdure tells other programs: webhooks, alerts, metrics, traces."""
