"""What it costs to watch jobs: event log, statistics, metrics, traces, alerts, audit trail, hooks."""
