"""Make a store from a URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from perdure.clock import Clock
from perdure.engines.shared.database.sql_files import check_identifier
from perdure.errors import SettingsError, StoreRefused
from perdure.policy.secrets.passwords import ESCAPES, without_password
from perdure.storage.port import Store

DEFAULT_URL: Final = "sqlite:///perdure.db"
LISTEN_URL_VARIABLE: Final = "PERDURE_LISTEN_URL"
_LISTEN_HELP: Final = "write postgresql://user@host/database, for the same database without the pooler"
_HELP: Final = "use sqlite:///file.db (or sqlite:////absolute/file.db), or postgresql://user@host/database"


def store_for(url: str, clock: Clock | None = None, *, listen_url: str | None = None) -> Store:
    """Make the store for a URL, without opening it.

    perdure's own options go into the query: `prefix` (both engines), `driver` (SQLite: apsw or sqlite3), `schema`,
    `prepare` and `pooler` (PostgreSQL). `listen_url` reaches the same PostgreSQL database without a pooler, for
    notifications. `clock` replaces the database's clock: for tests.
    """
    if not isinstance(url, str):
        raise SettingsError("url", f"must be text, got {type(url).__name__}: {_HELP}")
    if "#" in url:
        raise SettingsError("url", f"must not contain a #: {ESCAPES}; choose another name for an SQLite file")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SettingsError("url", f"is not understood: {_HELP}") from None  # it may quote the password
    options = dict(parse_qsl(parts.query))
    prefix = options.pop("prefix", "")
    if prefix:
        check_identifier("url option prefix", prefix)
    if parts.scheme == "sqlite":
        from perdure.engines.sqlite.store import SqliteStore  # noqa: PLC0415 - load only the engine in use

        driver = options.pop("driver", "apsw")
        _refuse_rest(options)
        if ":memory:" in parts.path:
            raise SettingsError(
                "url",
                "names :memory:, which other connections cannot see: name a file; for tests use "
                "perdure.testing, which makes a temporary file",
            )
        if parts.netloc or len(parts.path) <= 1:
            raise SettingsError("url", f"{without_password(url)!r} names no SQLite file: {_HELP}")
        return SqliteStore(parts.path[1:], driver=driver, prefix=prefix, clock=clock)
    if parts.scheme in {"postgresql", "postgres"}:
        try:
            from perdure.engines.postgres.store import PostgresStore  # noqa: PLC0415 - as above
        except ImportError as error:
            raise SettingsError("url", "needs PostgreSQL support: pip install 'perdure[postgres]'") from error
        schema = check_identifier("url option schema", options.pop("schema", "perdure"))
        query = f"?{urlencode(options)}" if options else ""
        clean = f"postgresql://{parts.netloc}{parts.path}{query}"  # urlunsplit drops the // of an empty host
        return PostgresStore(
            clean, schema=schema, prefix=prefix, listen_url=_checked_listen_url(listen_url), clock=clock
        )
    raise SettingsError("url", _what_is_wrong_with(parts.scheme))


def _what_is_wrong_with(scheme: str) -> str:
    database, plus, driver = scheme.partition("+")
    if plus and database in {"postgresql", "postgres", "sqlite"}:
        return f"names the driver {driver!r}, as SQLAlchemy's URLs do: write {database}:// without +{driver}"
    found = f"unknown scheme {scheme!r}" if scheme else "no scheme"
    return f"has {found}: {_HELP}"


def listen_url_for(url: str) -> str | None:
    """The listen URL from the environment. A PostgreSQL listen URL is ignored for an SQLite file."""
    return None if str(url).startswith("sqlite:") else os.environ.get(LISTEN_URL_VARIABLE) or None


def refuse_missing_file(url: str) -> None:
    """Refuse the URL of a missing SQLite file: opening it would create an empty file, and hide a mistyped URL."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not Path(parts.path[1:]).exists():
        raise StoreRefused(
            f"{parts.path[1:]}: there is no such file: check --url, PERDURE_URL or [tool.perdure], "
            "or create it with `perdure migrate`"
        )


def _checked_listen_url(url: str | None) -> str | None:
    """The URL without options that only the main URL accepts: both reach the same tables."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SettingsError("listen_url", f"is not understood: {_LISTEN_HELP}") from None
    if "#" in url or parts.scheme not in {"postgresql", "postgres"}:
        raise SettingsError("listen_url", f"names no PostgreSQL database: {_LISTEN_HELP}; {ESCAPES}")
    options = {name: value for name, value in parse_qsl(parts.query) if name not in {"schema", "prefix"}}
    return f"postgresql://{parts.netloc}{parts.path}{f'?{urlencode(options)}' if options else ''}"


def _refuse_rest(options: dict[str, str]) -> None:
    if options:
        raise SettingsError("url", f"has an unknown option {next(iter(options))!r}: SQLite takes driver and prefix")
