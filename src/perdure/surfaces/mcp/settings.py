"""Settings of the server for agents."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from perdure.errors import SettingsError

_MOST_JOBS: Final = 10_000
_LEAST_ANSWER_CHARACTERS: Final = 4_000
_MOST_ANSWER_CHARACTERS: Final = 1_000_000


class McpSettings(Struct, frozen=True, kw_only=True):
    """What agents may do.

    Without `commands` they only read. One call changes at most `jobs_per_call` jobs. One answer holds at most
    `answer_characters` characters of jobs' text, and at most four times as many characters in total.
    """

    commands: bool = False
    jobs_per_call: int = 100
    answer_characters: int = 20_000

    def __post_init__(self) -> None:
        if not isinstance(self.commands, bool):
            raise SettingsError("mcp.commands", f"must be True or False, got {self.commands!r:.100}")
        _check("jobs_per_call", self.jobs_per_call, 1, _MOST_JOBS)
        _check("answer_characters", self.answer_characters, _LEAST_ANSWER_CHARACTERS, _MOST_ANSWER_CHARACTERS)


def _check(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SettingsError(f"mcp.{field}", f"must be a whole number from {least:,} to {most:,}, got {value!r:.100}")
