"""Translates a name in the code to the option or argument that the user typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

_URL: Final = "PERDURE_URL"
_ALIASES: Final = {
    "expression": ("--cron", "--every"),
    "start": ("--from",),
    "end": ("--to",),
    "run_at": ("--at",),
    "id": ("--before",),
    "number": ("--page",),
    "events": ("--event",),
    "queues": ("--queue",),
    "kinds": ("--kind",),
    "tags": ("--tag",),
}


def as_typed(root: Any, words: Sequence[str]) -> Callable[[str], str]:
    """The option or argument of this command for a field; other fields stay unchanged."""
    command = _called(root, words)
    names = {name: shown for param in command.params for name, shown in _names(param)}

    def typed(field: str) -> str:
        found = names.get(field, names.get(field.lower()))
        if found == "--url" and not _is_among(found, words):
            return _URL if _URL in os.environ else field
        if found is not None:
            return found
        maybe = _ALIASES.get(field) or (names.get(field.removeprefix("worker."), ""),)
        return next((option for option in maybe if option in names.values() and _is_among(option, words)), field)

    return typed


def path_of(root: Any, words: Sequence[str]) -> str:
    """The command as typed: `perdure jobs list`."""
    command, path = root, [root.name]
    for word in words:
        if (found := getattr(command, "commands", {}).get(word)) is None:
            break
        command = found
        path.append(word)
    return " ".join(path)


def _called(command: Any, words: Sequence[str]) -> Any:
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _names(param: Any) -> Iterator[tuple[str, str]]:
    """All names of a parameter in the code, and its name on the command line."""
    if param.param_type_name == "argument":
        shown = param.metavar or param.name.upper()
        yield from ((param.name, shown), (shown, shown), (shown.lower(), shown))
        return
    shown = next((option for option in param.opts if option.startswith("--")), param.opts[0])
    yield param.name, shown
    for option in param.opts:
        yield option.lstrip("-").replace("-", "_"), shown


def _is_among(option: str, words: Sequence[str]) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in words)
