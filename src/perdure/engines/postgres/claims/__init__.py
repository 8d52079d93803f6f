"""How workers claim jobs and record outcomes."""
