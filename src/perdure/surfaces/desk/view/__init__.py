"""Values as people read them: numbers, spans, times, states, JSON and text that others wrote."""
