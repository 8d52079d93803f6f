"""The port for operators: insight, counts, commands, audit, diagnosis, backups."""
