"""Commands for the database: migrate, backup, doctor, stats, audit."""
