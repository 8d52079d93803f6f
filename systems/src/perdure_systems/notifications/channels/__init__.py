"""The channels that a notification can take. Each one knows its receiver's own format and nothing of retries."""
