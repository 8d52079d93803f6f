"""Values formatted for people: numbers, spans, times, states, JSON and untrusted text."""
