"""What the tools return: the schemas that agents see."""
