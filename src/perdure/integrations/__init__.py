"""Small parts for web frameworks. Each module needs its framework, and is imported only by name."""
