"""Commands on all jobs that match a filter: run here with a progress bar, or left to the workers."""
