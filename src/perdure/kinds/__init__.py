"""Kinds of jobs: their names, handlers, signatures and policies, as declared by the app."""
