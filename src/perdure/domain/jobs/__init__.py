"""Jobs: identity, states, outcomes of attempts, and transitions."""
