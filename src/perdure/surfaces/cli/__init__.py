"""The command line: a thin layer over `perdure.operate`. Loads nothing before it is called."""

import os
import sys

_BEING_COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # environment variables that shells set for completion


def main() -> None:
    """Run `perdure` with the arguments of this process, and exit."""
    from perdure.surfaces.cli.commands import command_line  # noqa: PLC0415 - typer and rich are for those who type

    command_line(_called())()


def _called() -> list[str]:
    """The words of the command line; during shell completion, only the command, once it is complete."""
    if "_PERDURE_COMPLETE" not in os.environ:
        return sys.argv[1:]
    line = next((os.environ[name] for name in _BEING_COMPLETED if name in os.environ), "")
    words = line.split()
    is_complete = len(words) > 2 or line[-1:].isspace()  # noqa: PLR2004 - a word follows the command
    return words[1:2] if is_complete else []
