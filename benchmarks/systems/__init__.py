"""What the systems must reach: ten times what the originals named."""
