"""Channels: where notices go, and how their deliveries went.

An address holds secrets. It is kept as the name of an environment variable (`env:SLACK_URL`), or encrypted
(`sealed:…`); only mail servers without a login are kept as they are.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.alerts.rule import Source

ENV: Final = "env:"
SEALED: Final = "sealed:"


class Channel(Struct, frozen=True, kw_only=True):
    """One stored channel. `scheme` says what it is, such as `smtp` or `slack`; None: only the worker knows.

    `secret` signs webhooks, and is stored like the address. `allow_private`: it may lead to a private address.
    """

    name: str
    address: str
    scheme: str | None = None
    secret: str | None = None
    allow_private: bool = False


class ChannelRecord(Struct, frozen=True, kw_only=True):
    """A channel, its origin, and how its last deliveries went."""

    channel: Channel
    source: Source
    created_at: datetime
    changed_at: datetime
    declared_at: datetime | None = None
    sent_at: datetime | None = None  # the last notice that it accepted
    failed_at: datetime | None = None  # the last attempt that failed
    error: str | None = None  # of that attempt
    failures: int = 0  # failed attempts since the last notice that it accepted


class ChannelView(Struct, frozen=True, kw_only=True):
    """A channel as shown: only those parts of its address that are not secret."""

    name: str
    address: str
    scheme: str | None
    signed: bool
    allow_private: bool
    source: Source
    created_at: datetime
    changed_at: datetime
    sent_at: datetime | None = None
    failed_at: datetime | None = None
    error: str | None = None
    failures: int = 0
    is_broken: bool = False
