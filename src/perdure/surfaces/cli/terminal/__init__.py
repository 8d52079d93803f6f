"""Input and output of all commands: output, times, questions, sanitized text."""
