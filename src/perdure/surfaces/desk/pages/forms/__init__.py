"""Forms that act: enqueue a job, emit an event, pause jobs, make tokens."""
