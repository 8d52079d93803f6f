"""`perdure top`: a live screen in the terminal. Needs the extra `top` (Textual)."""
