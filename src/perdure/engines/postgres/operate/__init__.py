"""Views and commands of operators."""
