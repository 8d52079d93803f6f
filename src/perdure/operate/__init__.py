"""Commands and views: what every surface offers to people."""
