"""Kinds of jobs: their names, handlers, signatures and policies, as the app declares them."""
