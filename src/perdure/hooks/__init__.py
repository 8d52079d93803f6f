"""What an application hangs around its jobs: middleware around attempts, lifespans around workers."""
