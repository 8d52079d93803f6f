"""Feature flags with rollout, and schedules that change them: retried in order, applied once, explained."""
