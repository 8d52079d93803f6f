"""Forms of commands: enqueue a job, emit an event, pause jobs, make tokens."""
