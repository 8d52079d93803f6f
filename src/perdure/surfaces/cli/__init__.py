"""The command line: a thin layer over `perdure.operate`. Loads nothing before it is called."""

import sys


def main() -> None:
    """Run `perdure` with the arguments of this process, and exit."""
    from perdure.surfaces.cli.commands import command_line  # noqa: PLC0415 - typer and rich are for those who type

    command_line(sys.argv[1:])()
