"""Access tokens: made, shown once, checked, revoked; and the sessions of people who logged in with one.

A secret is 256 random bits. Its SHA-256 is enough to store (docs/decisions/0042-tokens-are-stored-as-sha-256.md): such
a secret cannot be guessed, so a slow hash would only slow down each request.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from datetime import timedelta
from typing import Final

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.operate.access import Scope, TokenView
from perdure.domain.operate.audit import HANDLER, SYSTEM, By
from perdure.errors import ArgumentError, ConflictError, NotFoundError, StoreError
from perdure.kinds.options import checked_name
from perdure.operate.wording import listed
from perdure.storage.operate.tokens import LiveToken, NewToken
from perdure.storage.port import Store

PREFIX: Final = "pdr_"
_SESSION_PREFIX: Final = "pds_"
_SECRET_BYTES: Final = 32
_ID_BYTES: Final = 5
_NAME_LIMIT_CHARACTERS: Final = 100
_SECRET_LIMIT_CHARACTERS: Final = 100
_RESERVED: Final = frozenset({SYSTEM, HANDLER, "local", "app"})


async def create_token(
    store: Store, by: By, name: str, scope: str, expires: Duration | None = None
) -> tuple[TokenView, str]:
    """Make a token and return it with its secret, which is not stored and cannot be shown again.

    Raises ConflictError if a token that is not revoked has this name.
    """
    lifetime = None if expires is None else parse_duration("expires", expires)
    if lifetime is not None and not lifetime:
        raise ArgumentError("expires", "must be longer than 0; leave it out for a token that does not expire")
    secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    token = NewToken(
        id=secrets.token_hex(_ID_BYTES),
        name=_checked_name(name),
        scope=checked_scope(scope),
        digest=_digest(secret),
        expires_at=None if lifetime is None else await store.now() + lifetime,
    )
    made = await store.add_token(token, by)
    if made is None:
        raise ConflictError(f"there is a token {name!r} already: choose another name, or revoke that one first")
    return made, secret


async def revoke_token(store: Store, by: By, id_or_name: str) -> TokenView:
    """Revoke a token, named by its id or its name; its sessions end.

    Raises NotFoundError, and ConflictError if it is revoked already.
    """
    known = await store.tokens()
    named = [token for token in known if id_or_name in {token.id, token.name}]
    if not named:
        there = listed(repr(token.name) for token in known if token.revoked_at is None)
        raise NotFoundError(f"there is no token {id_or_name!r}{f'; there are {there}' if there else ''}")
    standing = [token for token in named if token.revoked_at is None]
    if not standing or not await store.revoke_token(standing[0].id, by):
        raise ConflictError(f"token {id_or_name!r} is revoked already")
    return next(token for token in await store.tokens() if token.id == standing[0].id)


async def check_token(store: Store, secret: str) -> TokenView | None:
    """The token of this secret, or None if it is unknown, revoked or expired. Its use is noted once a minute."""
    if not _could_be(secret, PREFIX):
        return None
    digest = _digest(secret)
    return await _used(store, await store.live_token(digest), digest)


async def open_session(store: Store, token: TokenView, lifetime: timedelta) -> str:
    """Begin a session for the holder of a token and return its secret."""
    secret = _SESSION_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    await store.open_session(_digest(secret), token.id, lifetime)
    return secret


async def check_session(store: Store, secret: str) -> TokenView | None:
    """The token of this session, or None if the session is over, or its token revoked or expired."""
    if not _could_be(secret, _SESSION_PREFIX):
        return None
    digest = _digest(secret)
    return await _used(store, await store.session(digest), digest)


async def close_session(store: Store, secret: str) -> None:
    """End a session."""
    if _could_be(secret, _SESSION_PREFIX):
        await store.close_session(_digest(secret))


async def has_live_token(store: Store) -> bool:
    """Whether there is a token that is neither revoked nor expired."""
    now = await store.now()
    return any(token.is_live(now) for token in await store.tokens())


def checked_scope(value: str) -> Scope:
    """A scope by its word."""
    try:
        return Scope(value)
    except ValueError:
        raise ArgumentError("scope", f"must be one of {', '.join(Scope)}, got {value!r}") from None


async def _used(store: Store, found: LiveToken | None, digest: str) -> TokenView | None:
    if found is None or not hmac.compare_digest(found.digest, digest):
        return None
    if not found.is_noted:
        with suppress(StoreError):  # a database that takes no writes still lets callers read
            await store.note_use(found.token.id)
    return found.token


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _could_be(secret: str, prefix: str) -> bool:
    return secret.startswith(prefix) and len(secret) <= _SECRET_LIMIT_CHARACTERS and secret.isascii()


def _checked_name(name: str) -> str:
    """The name of a token: it is the actor of what its holder does, so it must not pose as the engine."""
    checked_name("name", name, _NAME_LIMIT_CHARACTERS)
    if name in _RESERVED or name.startswith(("schedule ", "cli:", "mcp:")) or name != name.strip():
        raise ArgumentError("name", f"must not be a name that perdure uses itself, or begin with a space, got {name!r}")
    return name
