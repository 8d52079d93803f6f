"""Settings of access over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.duration import Duration, read_spans
from perdure.errors import SettingsError
from perdure.surfaces.access.requests.authority import read_authority

UNIX: Final = "unix"
"""The entry of `proxies` for a proxy that connects over a Unix socket."""

_LEAST_BODY_LIMIT_BYTES: Final = 1_024
_PREFIX: Final = "PERDURE_DESK_"
_WORDS: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


class AccessSettings(Struct, frozen=True, kw_only=True):
    """Who may use the desk, and under which host names.

    Without `requires_token`, callers on this machine need no token. `hosts` are names under which the desk is reached
    besides localhost, such as "desk.example.com" or "*.example.com". `proxies` are addresses or networks whose
    X-Forwarded headers are trusted; "unix" is a Unix socket. Within `login_window`, one address may fail to log in
    `login_failures` times, and all addresses together `login_failures_of_all` times.
    """

    requires_token: bool = False
    read_only: bool = False
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    session_lifetime: timedelta = timedelta(hours=12)
    largest_body: int = 1_048_576
    login_failures: int = 5
    login_failures_of_all: int = 100
    login_window: timedelta = timedelta(minutes=5)

    if TYPE_CHECKING:  # the accepted types; the fields above have the stored ones

        def __init__(
            self,
            *,
            requires_token: bool = ...,
            read_only: bool = ...,
            hosts: Iterable[str] = ...,
            proxies: Iterable[str] = ...,
            session_lifetime: Duration = ...,
            largest_body: int = ...,
            login_failures: int = ...,
            login_failures_of_all: int = ...,
            login_window: Duration = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        read_spans("access", self, ("session_lifetime", "login_window"))
        for field in ("session_lifetime", "login_window"):
            if getattr(self, field) < timedelta(seconds=1):
                raise SettingsError(f"access.{field}", f"must be at least 1s, got {getattr(self, field)}")
        _check_number("largest_body", self.largest_body, _LEAST_BODY_LIMIT_BYTES)
        _check_number("login_failures", self.login_failures, 1)
        _check_number("login_failures_of_all", self.login_failures_of_all, 1)
        force_setattr(self, "hosts", tuple(_checked_host(name) for name in _names("hosts", self.hosts)))
        force_setattr(self, "proxies", tuple(_checked_proxy(name) for name in _names("proxies", self.proxies)))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> AccessSettings:
        """The settings from environment variables.

        PERDURE_DESK_HOSTS and _PROXIES are comma-separated lists, _REQUIRES_TOKEN and _READ_ONLY are 1 or 0,
        _SESSION_LIFETIME is a duration.
        """
        given: dict[str, Any] = {}
        for field in ("hosts", "proxies"):
            if text := environ.get(_PREFIX + field.upper(), ""):
                given[field] = [name.strip() for name in text.split(",") if name.strip()]
        for field in ("requires_token", "read_only"):
            if text := environ.get(_PREFIX + field.upper(), ""):
                given[field] = _read_flag(_PREFIX + field.upper(), text)
        if text := environ.get(f"{_PREFIX}SESSION_LIFETIME", ""):
            given["session_lifetime"] = text
        return cls(**given)


def _names(field: str, value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise SettingsError(f"access.{field}", f"must be a list of names, got {value!r}; write {field}=[{value!r}]")
    return [str(name) for name in value]


def _checked_host(name: str) -> str:
    known = read_authority(name.removeprefix("*."))
    if known is None or known.port is not None:
        raise SettingsError(
            "access.hosts", f'must be names without scheme and port, such as "desk.example.com", got {name!r}'
        )
    return name.lower()


def _checked_proxy(name: str) -> str:
    if name != UNIX:
        try:
            ip_network(name, strict=False)
        except ValueError:
            raise SettingsError(
                "access.proxies", f'must be addresses or networks, such as "10.0.0.7" or "10.0.0.0/8", got {name!r}'
            ) from None
    return name


def _check_number(field: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingsError(f"access.{field}", f"must be a whole number of at least {least:,}, got {value!r}")


def _read_flag(variable: str, text: str) -> bool:
    if (value := _WORDS.get(text.strip().lower())) is None:
        raise SettingsError(variable, f"must be 1 or 0, got {text!r}")
    return value
