"""What both engines share for views and commands of operators."""
