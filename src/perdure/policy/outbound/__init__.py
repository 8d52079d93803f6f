"""Rules for requests to receivers that others name."""
