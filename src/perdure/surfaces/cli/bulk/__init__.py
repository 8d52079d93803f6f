"""Commands on all jobs that match a filter: done here with a progress bar, or left to the workers."""
