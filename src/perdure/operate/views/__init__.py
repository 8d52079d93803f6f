"""What operators see: queues, kinds, flows, failure groups, statistics, future attempts."""
