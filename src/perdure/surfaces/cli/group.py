"""The root command: turns every error into one line and an exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from perdure.errors import ArgumentError, PerdureError
from perdure.surfaces.cli.exits import Exit, exit_for
from perdure.surfaces.cli.misplaced import where_it_belongs
from perdure.surfaces.cli.terminal.output import complain
from perdure.surfaces.cli.typed import as_typed, path_of


class Perdure(TyperGroup):
    """`perdure` itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _show_flags_as_flags(self, typer.Context(self, **self.context_settings))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit with its code."""
        del standalone_mode
        _without_type(self.params)  # typer adds the completion options after it makes this command
        words = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in words
        if as_json:  # without a log configuration, lines would go to standard error, among JSON documents
            logging.getLogger("perdure").addHandler(logging.NullHandler())
        try:
            code = super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        except PerdureError as error:
            _complain_of(error, as_typed(self, words), as_json=as_json)
            code = exit_for(error)
        except typer.Abort:
            complain("interrupted", as_json=as_json)
            code = Exit.FAILED
        except typer.TyperException as error:
            code = _misused(error, where_it_belongs(self, words), path_of(self, words), as_json=as_json)
        sys.exit(int(code or 0))


def _show_flags_as_flags(command: Any, context: typer.Context) -> None:
    """Remove the type that typer shows in the help of a flag: a flag takes no value."""
    _without_type(command.get_params(context))
    for inner in getattr(command, "commands", {}).values():
        _show_flags_as_flags(inner, typer.Context(inner, parent=context))


def _without_type(params: Sequence[Any]) -> None:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""


def _complain_of(error: PerdureError, typed: Callable[[str], str], *, as_json: bool) -> None:
    """Print an error; it names an option, not the name in the code."""
    if not isinstance(error, ArgumentError):
        complain(str(error), as_json=as_json)
        return
    field = typed(error.field)
    complain(f"{field}{str(error).removeprefix(error.field)}", as_json=as_json, field=field)


def _misused(error: typer.TyperException, better: str | None, path: str, *, as_json: bool) -> int:
    """Report a command line that typer cannot parse; one without any word prints the help."""
    if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
        error.show()  # type: ignore[attr-defined] # prints the help
    else:
        param = getattr(error, "param", None)
        field = param.opts[0] if param is not None else getattr(error, "option_name", None)
        message = _in_our_words(error, field)
        if better is not None:  # typer matched by letters alone
            message = message.partition(" Did you mean")[0]
        complain(message, as_json=as_json, field=field, hint=better or f"Try: {path} --help")
    return Exit.USAGE


def _in_our_words(error: typer.TyperException, field: str | None) -> str:
    """The error of a value that pydantic parsed for typer: the option, the rule and the value."""
    problems: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    problem = problems[0] if problems else {}
    match problem.get("type"):
        case "int_parsing":
            return f"{field} must be a whole number, got {problem['input']!r}"
        case "greater_than_equal":
            return f"{field} must be at least {problem['ctx']['ge']}, got {problem['input']}"
        case "value_error":
            return f"{field} {problem['ctx']['error']}"
    return error.format_message()
