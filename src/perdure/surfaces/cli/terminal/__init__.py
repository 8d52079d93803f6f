"""What every command reads and prints: output, times, questions, sanitized text."""
