"""Keys that group jobs: uniqueness, fair shares, and the keys of gates."""
