"""Jobs on a terminal: a table of them, and one in full."""
