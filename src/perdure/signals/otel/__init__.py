"""OpenTelemetry: traces and metrics of jobs."""
