"""What both engines compute for gates."""
