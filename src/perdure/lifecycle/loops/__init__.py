"""The one periodic loop, the crew of loops of a process, and leadership."""
