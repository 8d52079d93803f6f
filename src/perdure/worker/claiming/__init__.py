"""Claims jobs for this worker: free slots, the fetcher, quarantine, the slow start."""
