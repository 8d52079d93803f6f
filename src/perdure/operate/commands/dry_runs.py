"""Dry runs that a later call confirms by id: bound to an actor, an action and its subject.

The id is short, because an agent has to copy it. It holds the time and a signature with a secret of the database, but
not the plan: the confirming call repeats the plan, and the signature must fit. So it needs no row, is valid in every
process on this database, and is invalid for another actor, action or list of jobs. Its use takes a key in the database,
so that it is used once.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.errors import ConflictError
from perdure.storage.port import Store

VALID_FOR: Final = timedelta(minutes=10)
_KEY: Final = "dry_runs"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 4
_SIGNATURE_DIGITS: Final = 24
_FORM: Final = re.compile(r"dry-([0-9a-f]{1,12})-([0-9a-f]{8})-([0-9a-f]{24})")


class DryRun(Struct, frozen=True):
    """A dry run: the id that confirms it, and until when it is valid."""

    id: str
    expires_at: datetime


class DryRuns:
    """Makes and checks the dry runs of one actor."""

    def __init__(self, store: Store, actor: str) -> None:
        self._store = store
        self._actor = actor

    async def make(self, action: str, about: Mapping[str, Any]) -> DryRun:
        """A new dry run of this action and subject, given as plain JSON values."""
        at = int((await self._store.now()).timestamp())
        nonce = secrets.token_hex(_NONCE_BYTES)
        signature = await self._signature(action, about, at, nonce)
        return DryRun(f"dry-{at:x}-{nonce}-{signature}", _moment(at) + VALID_FOR)

    async def check(self, dry_run_id: str, action: str, about: Mapping[str, Any]) -> DryRun:
        """The dry run of this id; raises ConflictError if the id belongs to another one, or is too old."""
        found = _FORM.fullmatch(dry_run_id)
        if found is None:
            raise ConflictError(f"dry_run_id {dry_run_id[:60]!r} is not the id of a dry run: {_AGAIN}")
        at, nonce, given = int(found[1], 16), found[2], found[3]
        if not hmac.compare_digest(given, await self._signature(action, about, at, nonce)):
            raise ConflictError(
                f"dry_run_id {dry_run_id!r} is of another call: it holds for one actor, one action and exactly the "
                f"jobs that the dry run found. {_AGAIN.capitalize()}"
            )
        if await self._store.now() >= _moment(at) + VALID_FOR:
            raise ConflictError(f"dry_run_id {dry_run_id!r} is older than {format_duration(VALID_FOR)}: {_AGAIN}")
        return DryRun(dry_run_id, _moment(at) + VALID_FOR)

    async def use(self, dry_run: DryRun) -> None:
        """Use it up: exactly one call in any process succeeds; the others get ConflictError."""
        caller = secrets.token_hex(_KEY_BYTES)
        if not await self._store.once_per(f"dry run {dry_run.id}", 2 * VALID_FOR, caller):
            raise ConflictError(f"dry_run_id {dry_run.id!r} was used already: {_AGAIN}")

    async def _signature(self, action: str, about: Mapping[str, Any], at: int, nonce: str) -> str:
        key = await self._store.shared_key(_KEY, secrets.token_hex(_KEY_BYTES))
        text = msgspec.json.encode([self._actor, action, dict(about), at, nonce], order="sorted")
        return hmac.new(key.encode(), text, sha256).hexdigest()[:_SIGNATURE_DIGITS]


_AGAIN: Final = "make the dry run again (the same call without dry_run_id), look at it, and give its id"


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)
