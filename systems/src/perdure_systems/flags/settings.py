"""Settings, read from the environment whenever they are needed."""

from __future__ import annotations

from typing import Final

import msgspec

from perdure import SettingsError
from perdure_systems.kit.settings import Environment, number_from_env, text_from_env

MAX_RETRIES: Final = "FLAG_SCHEDULE_MAX_RETRIES"
ALERT_ADDRESS: Final = "FLAG_ALERT_ADDRESS"
"""Where alerts go; read where they are delivered."""
FEWEST_RETRIES: Final = 0
MOST_RETRIES: Final = 10
DEFAULT_RETRIES: Final = 3
_LEAST_TOKEN_CHARACTERS: Final = 8


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What operators choose. `admins` and `readers` are names by their bearer tokens."""

    max_retries: int
    cache_url: str
    admins: dict[str, str]
    readers: dict[str, str]


def read_settings(environment: Environment | None = None) -> Settings:
    """All settings; a `SettingsError` names the variable, its value and what is allowed."""
    admins, readers = _tokens("FLAG_ADMIN_TOKENS", environment), _tokens("FLAG_READER_TOKENS", environment)
    if shared := admins.keys() & readers.keys():
        raise SettingsError("FLAG_READER_TOKENS", f"gives {readers[shared.pop()]} the token of an admin")
    return Settings(
        max_retries=max_retries(environment),
        cache_url=text_from_env("FLAG_CACHE_URL", environment=environment).rstrip("/"),
        admins=admins,
        readers=readers,
    )


def max_retries(environment: Environment | None = None) -> int:
    """How often a schedule is retried that does not say so itself."""
    return number_from_env(
        MAX_RETRIES, DEFAULT_RETRIES, at_least=FEWEST_RETRIES, at_most=MOST_RETRIES, environment=environment
    )


def _tokens(variable: str, environment: Environment | None) -> dict[str, str]:
    """`name:token` pairs, separated by commas. The value is not repeated in errors: it holds secrets."""
    tokens: dict[str, str] = {}
    for number, pair in enumerate(filter(None, text_from_env(variable, environment=environment).split(",")), 1):
        name, _, token = (part.strip() for part in pair.partition(":"))
        if not name or len(token) < _LEAST_TOKEN_CHARACTERS:
            wanted = (
                f"must be name:token pairs separated by commas, tokens of at least {_LEAST_TOKEN_CHARACTERS} characters"
            )
            raise SettingsError(variable, f"{wanted}; pair {number} is not")
        if token in tokens:
            raise SettingsError(variable, f"gives pair {number} a token that another name has")
        tokens[token] = name
    return tokens
