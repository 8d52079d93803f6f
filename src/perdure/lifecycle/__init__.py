"""How a process opens, runs and closes: the service, the one periodic loop, process identity."""
