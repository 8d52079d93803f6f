"""Settings of the four authorities, under the names that they have always had.

They are read when they are used, so that a changed key or a new client certificate needs no restart. An authority whose
variables are not set is not configured: orders for it are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from perdure import SettingsError
from perdure_systems.kit.settings import Environment, number_from_env, required_from_env, text_from_env

DEFAULT_MAX_WAIT: Final = timedelta(seconds=600)
_WAIT_LIMIT_SECONDS: Final = 30 * 86_400
_DIGICERT_URL: Final = "https://www.digicert.com/services/v2"
_SECTIGO_URL: Final = "https://cert-manager.com/api"


class Authority(StrEnum):
    """Where certificates are ordered."""

    DIGICERT = "digicert"
    SECTIGO = "sectigo"
    ENTRUST = "entrust"
    GLOBALSIGN = "globalsign"

    @property
    def title(self) -> str:  # type: ignore[override] # the name that people write; str.title is not needed
        """The authority's own spelling."""
        return _TITLES[self]


_TITLES: Final = {
    Authority.DIGICERT: "DigiCert",
    Authority.SECTIGO: "Sectigo",
    Authority.ENTRUST: "Entrust",
    Authority.GLOBALSIGN: "GlobalSign",
}


class Secret(msgspec.Struct, frozen=True):
    """A value that no log, error or page shows. `reveal()` gives it to the one who sends it."""

    _value: str

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__


class AuthoritySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach one authority. `headers` prove who we are; with mutual TLS `client_certificate` does, too.

    `server_roots` is a PEM file that the authority's own server is verified against, `trusted_roots` one for the
    certificates that it issues. Empty means the usual roots of this machine.
    """

    authority: Authority
    url: str
    headers: tuple[tuple[str, Secret], ...] = ()
    client_certificate: Path | None = None
    client_key: Path | None = None
    server_roots: Path | None = None
    trusted_roots: Path | None = None
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str) -> str:
        """What an order at this authority needs besides: an organisation, a product, a term."""
        return dict(self.options).get(name, "")


def read_settings(authority: Authority, environment: Environment | None = None) -> AuthoritySettings:
    """The settings of an authority; raises SettingsError, which names the variable that is missing or wrong."""
    read = _Reader(authority, environment)
    return _READERS[authority](read)


def max_wait_of(authority: Authority, environment: Environment | None = None) -> timedelta:
    """How long one round of polls takes: CERTCTL_<AUTHORITY>_POLL_MAX_WAIT_SECONDS; 0 or not set: 600 s (D1)."""
    variable = f"CERTCTL_{authority.name}_POLL_MAX_WAIT_SECONDS"
    seconds = number_from_env(variable, 0, at_least=0, at_most=_WAIT_LIMIT_SECONDS, environment=environment)
    return timedelta(seconds=seconds) if seconds else DEFAULT_MAX_WAIT


def is_configured(authority: Authority, environment: Environment | None = None) -> bool:
    """Whether orders can be placed there."""
    try:
        read_settings(authority, environment)
    except SettingsError:
        return False
    return True


class _Reader:
    """Reads the variables of one authority."""

    def __init__(self, authority: Authority, environment: Environment | None) -> None:
        self.authority = authority
        self._environment = environment

    def text(self, name: str, default: str = "") -> str:
        return text_from_env(self._variable(name), default, environment=self._environment)

    def required(self, name: str) -> str:
        why = f"orders at {self.authority.title} need it"
        return required_from_env(self._variable(name), why=why, environment=self._environment)

    def secret(self, name: str) -> Secret:
        return Secret(self.required(name))

    def number(self, name: str, default: int | None = None) -> str:
        if default is None:
            self.required(name)
        variable = self._variable(name)
        return str(number_from_env(variable, default or 0, at_least=1, environment=self._environment))

    def path(self, name: str) -> Path | None:
        text = self.text(name)
        return self._file(name, text) if text else None

    def required_path(self, name: str) -> Path:
        return self._file(name, self.required(name))

    def url(self, name: str, default: str = "") -> str:
        url = (self.text(name, default) if default else self.required(name)).rstrip("/")
        if urlsplit(url).scheme != "https" or not urlsplit(url).netloc:
            raise SettingsError(self._variable(name), f"must begin with https://, because keys are sent, got {url!r}")
        return url

    def _file(self, name: str, text: str) -> Path:
        path = Path(text)
        if not path.is_file():
            raise SettingsError(self._variable(name), f"must name a PEM file that exists, got {text!r}")
        return path

    def _variable(self, name: str) -> str:
        return f"CERTCTL_{self.authority.name}_{name}"


def _digicert(read: _Reader) -> AuthoritySettings:
    return AuthoritySettings(
        authority=read.authority,
        url=read.url("BASE_URL", _DIGICERT_URL),
        headers=(("X-DC-DEVKEY", read.secret("API_KEY")),),
        server_roots=read.path("SERVER_CA_PATH"),
        trusted_roots=read.path("ROOTS_PATH"),
        options=(
            ("organization", read.required("ORG_ID")),
            ("product", read.text("PRODUCT_TYPE", "ssl_basic")),
        ),
    )


def _sectigo(read: _Reader) -> AuthoritySettings:
    return AuthoritySettings(
        authority=read.authority,
        url=read.url("BASE_URL", _SECTIGO_URL),
        headers=(
            ("customerUri", read.secret("CUSTOMER_URI")),
            ("login", read.secret("LOGIN")),
            ("password", read.secret("PASSWORD")),
        ),
        server_roots=read.path("SERVER_CA_PATH"),
        trusted_roots=read.path("ROOTS_PATH"),
        options=(
            ("organization", read.number("ORG_ID")),
            ("type", read.number("CERT_TYPE")),
            ("term", read.number("TERM", 365)),
        ),
    )


def _entrust(read: _Reader) -> AuthoritySettings:
    return AuthoritySettings(
        authority=read.authority,
        url=read.url("API_URL"),
        client_certificate=read.required_path("CLIENT_CERT_PATH"),
        client_key=read.required_path("CLIENT_KEY_PATH"),
        server_roots=read.path("SERVER_CA_PATH"),
        trusted_roots=read.path("ROOTS_PATH"),
        options=(("ca", read.required("CA_ID")), ("profile", read.text("PROFILE_ID"))),
    )


def _globalsign(read: _Reader) -> AuthoritySettings:
    return AuthoritySettings(
        authority=read.authority,
        url=read.url("API_URL").removesuffix("/v2"),  # the paths begin with it, and some accounts are given it as well
        headers=(("ApiKey", read.secret("API_KEY")), ("ApiSecret", read.secret("API_SECRET"))),
        client_certificate=read.required_path("CLIENT_CERT_PATH"),
        client_key=read.required_path("CLIENT_KEY_PATH"),
        server_roots=read.path("SERVER_CA_PATH"),
        trusted_roots=read.path("ROOTS_PATH"),
    )


_READERS: Final[Mapping[Authority, Callable[[_Reader], AuthoritySettings]]] = {
    Authority.DIGICERT: _digicert,
    Authority.SECTIGO: _sectigo,
    Authority.ENTRUST: _entrust,
    Authority.GLOBALSIGN: _globalsign,
}
