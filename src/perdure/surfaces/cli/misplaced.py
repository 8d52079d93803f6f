"""Words typed in the wrong place: a command that belongs to a group, or an option before its command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

_KNOWN_ELSEWHERE: Final = {  # words of other tools
    "queues": "perdure stats",
    "queue": "perdure stats",
    "status": "perdure stats",
    "kinds": "perdure stats",
    "retry": "perdure dead requeue",
    "run": "perdure worker",
    "start": "perdure worker",
}
_COMMANDS_SUGGESTED: Final = 3  # commands that a hint writes out


def where_it_belongs(root: Any, words: Sequence[str]) -> str | None:
    """The corrected command, if the first word is neither a command nor an option of `perdure` itself."""
    if not words or words[0] in root.commands:
        return None
    word = words[0].partition("=")[0]
    if word.startswith("-"):
        takers = [path for path, command in _commands(root) if word in _options(command)]
        meant = [path for path in takers if set(path.split()[1:]) <= set(words)]  # the command that is typed after it
        return f"{word} goes after the command, as in: {(meant or takers)[0]} {word} …" if takers else None
    paths = [path for path, _ in _commands(root) if path.split()[-1] == word]
    if not paths and word in _KNOWN_ELSEWHERE:
        paths = [_KNOWN_ELSEWHERE[word]]
    if len(paths) > _COMMANDS_SUGGESTED:
        others = ", ".join(path.split()[1] for path in paths[1:])
        return f"Did you mean: {paths[0]}? Other groups with {word}: {others}"
    return f"Did you mean: {' or '.join(paths)}" if paths else None


def _commands(root: Any) -> Iterator[tuple[str, Any]]:
    """Every command with its words; those of groups first, since most act on jobs."""
    for name, command in sorted(root.commands.items(), key=lambda item: (item[0] != "jobs", item[0])):
        inner = getattr(command, "commands", None)
        if inner is None:
            yield f"{root.name} {name}", command
        else:
            yield from ((f"{root.name} {name} {word}", one) for word, one in sorted(inner.items()))


def _options(command: Any) -> set[str]:
    return {option for param in command.params for option in param.opts}
