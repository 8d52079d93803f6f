"""The tools that act: a dry run first, then the same call with its id."""
