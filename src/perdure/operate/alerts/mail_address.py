"""The address of an e-mail channel: a server, who to log in as, and who gets the mail.

    smtp://user:password@mail.example.com:587/?from=perdure@example.com&to=ops@example.com,dev@example.com

`smtp://` requires TLS (STARTTLS); `tls=none` is for servers without it. `smtps://` begins with TLS.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from perdure.errors import ArgumentError

_PORTS: Final = {"smtp": 587, "smtps": 465}
_MAILBOX: Final = re.compile(r"[^\s@<>,;:\\\"()\[\]]{1,64}@[^\s@<>,;:\\\"()\[\]]{1,255}")
_EXAMPLE: Final = "write it as smtp://user:password@mail.example.com:587/?from=a@example.com&to=b@example.com"
_RECEIVERS_LIMIT: Final = 50
ODD_PORT: Final = "is the port a number up to 65535, and are / ? # @ of a password written as %2F %3F %23 %40?"


class MailAddress(Struct, frozen=True, kw_only=True):
    """Where mail goes, and how. `starts_tls`: the connection begins in the clear and must be secured at once."""

    host: str
    port: int
    user: str | None
    password: str | None
    sender: str
    to: tuple[str, ...]
    is_tls: bool
    starts_tls: bool


def read_mail_address(field: str, text: str) -> MailAddress:
    """Parse an address; errors name the wrong part without repeating it, because it may hold a password."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # its message would repeat a part of the password
        raise ArgumentError(field, f"cannot be read: {ODD_PORT}; {_EXAMPLE}") from None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if query.keys() - {"from", "to", "tls"}:
        raise ArgumentError(field, f"has a parameter beside from, to and tls; {_EXAMPLE}")
    if not parts.hostname or parts.path.strip("/"):
        raise ArgumentError(field, f"must name a mail server and no path; {_EXAMPLE}")
    tls = query.get("tls", "starttls" if parts.scheme == "smtp" else "tls")
    if tls not in ({"starttls", "none"} if parts.scheme == "smtp" else {"tls"}):
        raise ArgumentError(field, "has an invalid tls=: smtp:// takes starttls or none, smtps:// is TLS already")
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    if password is not None and tls == "none" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        raise ArgumentError(field, "would send its password in the clear: leave out tls=none, or the password")
    return MailAddress(
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        user=user,
        password=password,
        sender=_mailbox(field, "from", query.get("from", "")),
        to=_receivers(field, query.get("to", "")),
        is_tls=tls == "tls",
        starts_tls=tls == "starttls",
    )


def _receivers(field: str, text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not 1 <= len(names) <= _RECEIVERS_LIMIT:
        raise ArgumentError(field, f"must name 1 to {_RECEIVERS_LIMIT} receivers in to=, got {len(names)}; {_EXAMPLE}")
    return tuple(_mailbox(field, "to", name) for name in names)


def _mailbox(field: str, name: str, text: str) -> str:
    if not _MAILBOX.fullmatch(text) or not text.isprintable():
        raise ArgumentError(field, f"has no e-mail address in {name}=; {_EXAMPLE}")
    return text
