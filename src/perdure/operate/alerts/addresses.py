"""Addresses of channels: the accepted forms, and how they are stored and shown.

smtp://…, smtps://…   e-mail
https://…, http://…   a webhook, signed with a secret
slack://… and others  the services that Apprise knows; never those that act on this machine
"""

from __future__ import annotations

import logging
import os
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from perdure.domain.alerts.channel import ENV, SEALED, Channel, ChannelRecord, ChannelView
from perdure.errors import ArgumentError, SettingsError
from perdure.kinds.options import checked_name
from perdure.operate.alerts.mail_address import ODD_PORT, read_mail_address
from perdure.operate.alerts.sealing import seal

MAIL: Final = frozenset({"smtp", "smtps"})
WEB: Final = frozenset({"http", "https"})
INCIDENT_TOOLS: Final = frozenset(
    ("firehydrant", "goalert", "goalerts", "ilert", "incidentio", "jira", "opsgenie", "pagerduty", "squadcast")
)
"""Schemes of services that keep incidents, which perdure opens and resolves under keys of its own."""
_ADDRESS_LIMIT_CHARACTERS: Final = 4_000
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9]{1,40})://.*", re.IGNORECASE | re.DOTALL)
_LOCAL: Final = frozenset(
    ("blink1", "dbus", "gio", "glib", "gnome", "growl", "kde", "macosx", "qt", "syslog", "windows")
)
_INSTEAD: Final = {
    **dict.fromkeys(("mailto", "mailtos", "deltachat", "deltachats"), "smtp:// or smtps://"),
    **dict.fromkeys(("json", "jsons", "xml", "xmls", "form", "forms", "apprise", "apprises"), "https://, a webhook"),
}
_OURS: Final = frozenset({"redirect", "retry", "wait", "tz", "overflow", "emojis", "store"})


def make_channel(name: str, address: str, *, secret: str | None = None, allow_private: bool = False) -> Channel:
    """A channel, checked, with its address as stored: by reference, or encrypted."""
    checked_name("name", name)
    text = _text("address", address)
    plain = os.environ.get(text.removeprefix(ENV)) if text.startswith(ENV) else text
    try:
        scheme = None if plain is None else check_address("address", plain)
    except ArgumentError as error:
        if plain is text:
            raise
        raise ArgumentError(error.field, f"{text} holds no valid address: {error}") from None
    if not isinstance(allow_private, bool):
        raise ArgumentError("allow_private", f"must be True or False, got {allow_private!r:.40}")
    if secret is not None and scheme is not None and scheme not in WEB:
        raise ArgumentError("secret", f"is for webhooks: a channel of {scheme}:// has none")
    if secret is None and scheme in WEB:
        raise ArgumentError("secret", "is missing: it signs what is sent to a webhook; write env:NAME or a text")
    return Channel(
        name=name,
        address=text if _is_open(text) else _kept_secret(text, "address"),
        scheme=scheme,
        secret=None if secret is None else _kept_secret(_text("secret", secret)),
        allow_private=allow_private,
    )


def check_address(field: str, text: str) -> str:
    """Refuse an invalid address without repeating it, because it holds secrets; returns its scheme."""
    scheme = scheme_of(field, text)
    if scheme in MAIL:
        read_mail_address(field, text)
    elif scheme in WEB:
        _check_web(field, text)
    else:
        check_service(field, scheme, text)
    return scheme


def scheme_of(field: str, text: str) -> str:
    """The scheme of an address, in lower case; raises ArgumentError if there is none."""
    found = _SCHEME.fullmatch(text)
    if found is None:
        raise ArgumentError(
            field, "must begin with a scheme, as in smtp://…, https://… or slack://…, or be env:NAME; see the docs"
        )
    return found[1].lower()


def check_service(field: str, scheme: str, text: str) -> Any:
    """The service of Apprise that an address means, made but not used; raises ArgumentError."""
    if scheme in _LOCAL:
        raise ArgumentError(field, f"must not be {scheme}://: it acts on the machine of the worker")
    if scheme in _INSTEAD:
        raise ArgumentError(field, f"must not be {scheme}://: use {_INSTEAD[scheme]}")
    own = sorted(_OURS & {name.lower() for name, _ in parse_qsl(urlsplit(text).query, keep_blank_values=True)})
    if own:
        raise ArgumentError(field, f"must not set {own[0]}=: perdure sets it")
    service = _instance(text)
    if service is None:
        raise ArgumentError(field, _complaint(scheme))
    return service


def shown(record: ChannelRecord, *, is_broken: bool) -> ChannelView:
    """A channel without its secrets."""
    channel = record.channel
    if channel.address.startswith(ENV):
        address = channel.address
    elif channel.address.startswith(SEALED):
        address = f"{channel.scheme}://•••• (stored encrypted)"
    else:
        address = channel.address if _is_open(channel.address) else f"{channel.scheme}://••••"
    return ChannelView(
        name=channel.name,
        address=address,
        scheme=channel.scheme,
        signed=channel.secret is not None,
        allow_private=channel.allow_private,
        source=record.source,
        created_at=record.created_at,
        changed_at=record.changed_at,
        sent_at=record.sent_at,
        failed_at=record.failed_at,
        error=record.error,
        failures=record.failures,
        is_broken=is_broken,
    )


def _text(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _ADDRESS_LIMIT_CHARACTERS:
        raise ArgumentError(field, f"must be a text of 1 to {_ADDRESS_LIMIT_CHARACTERS:,} characters")
    text = value.strip()
    if not text.isprintable() or " " in text:
        raise ArgumentError(field, "must have no spaces or control characters")
    if text.startswith(ENV) and not _VARIABLE.fullmatch(text.removeprefix(ENV)):
        raise ArgumentError(
            field, f"must name an environment variable after {ENV}, in letters, digits and _; the address goes there"
        )
    if text.startswith(SEALED):
        raise ArgumentError(field, f"must not begin with {SEALED}: give the address itself, or env:NAME")
    return text


def _kept_secret(text: str, field: str = "secret") -> str:
    return text if text.startswith(ENV) else seal(field, text)


def _is_open(text: str) -> bool:
    """Whether an address holds no secret: a mail server without a login."""
    parts = urlsplit(text)
    return parts.scheme in MAIL and parts.username is None


def _check_web(field: str, text: str) -> None:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:  # its message would repeat a part of the address
        raise ArgumentError(field, f"cannot be read: {ODD_PORT}") from None
    if not host:
        raise ArgumentError(field, "must name a host, as in https://hooks.example.com/alerts")
    if parts.username is not None or parts.password is not None:
        raise ArgumentError(field, "must have no user name or password: the signature says who sends it")


def _instance(text: str) -> Any:
    try:
        from apprise import Apprise, AppriseAsset  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise SettingsError("address", "needs Apprise, which is not installed: pip install 'perdure[alerts]'") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it logs what it cannot read, which may be a secret
    asset = AppriseAsset(plugin_paths=[], storage_mode="memory", async_mode=False, service_timeout=20.0)
    asset.http_redirects = False
    return Apprise.instantiate(text, asset=asset, suppress_exceptions=True)


def _complaint(scheme: str) -> str:
    from apprise.manager_plugins import NotificationManager  # noqa: PLC0415 - an extra

    if scheme not in NotificationManager():  # type: ignore[no-untyped-call] # Apprise gives no reason
        return f"has a scheme that is not known: {scheme}://; is there a typo? See the list of services of Apprise"
    return f"is not what {scheme}:// needs: a part is missing or wrong; see the page of {scheme} in the docs of Apprise"
