"""Measure perdure, its peers and the bare databases on the same machine in the same run."""
