"""The command line: a thin skin over `perdure.operate`. Loads nothing before it is called."""


def main() -> None:
    """Run `perdure` with the arguments of this process, and exit."""
    from perdure.surfaces.cli.commands import perdure  # noqa: PLC0415 - typer and rich are for those who type

    perdure()
