"""perdure itself, in the harness of its peers and against its own promises."""
