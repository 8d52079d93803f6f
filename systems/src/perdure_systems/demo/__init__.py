"""All systems together, against flaky stand-ins on this machine, with a guided tour in the terminal."""
