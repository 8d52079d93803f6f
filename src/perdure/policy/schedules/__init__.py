"""When schedules are due: cron, time zones, missed times, backups."""
