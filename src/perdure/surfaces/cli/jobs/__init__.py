"""Commands that show jobs and act on them."""
