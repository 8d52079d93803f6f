"""Hooks of an application: middleware around attempts, lifespans around workers, a tracer of jobs."""
