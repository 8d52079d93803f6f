"""Access tokens and sessions. A request only reads, without the write lock, except to note the use of a token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from perdure.domain.operate.access import TOKEN_USE_NOTED_EVERY, Scope, TokenView
from perdure.domain.operate.audit import By
from perdure.engines.shared.database.instants import after, from_micros, maybe_micros, maybe_moment, span
from perdure.engines.shared.operate.audit_details import token_created, token_revoked
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.storage.operate.tokens import LiveToken, NewToken


class TokenPart:
    """Tokens and sessions of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/commands/tokens.sql")
        self._audit = Audit(database)

    async def add_token(self, token: NewToken, by: By) -> TokenView | None:
        """Store a token; None if its name is taken."""
        row = {
            "id": token.id,
            "name": token.name,
            "scope": token.scope.value,
            "digest": token.digest,
            "actor": clean(by.actor),
            "expires_at": maybe_micros(token.expires_at),
        }

        def act(transaction: Transaction) -> TokenView | None:
            if not transaction.change(self._sql["add"], row | {"now": transaction.now}):
                return None
            self._audit.write(transaction, by, token_created(token))
            return TokenView(
                id=token.id,
                name=token.name,
                scope=token.scope,
                created_at=from_micros(transaction.now),
                created_by=clean(by.actor),
                expires_at=token.expires_at,
            )

        return await self._database.write(act)

    async def tokens(self) -> list[TokenView]:
        """All tokens, oldest first."""
        return await self._database.read(lambda each: [_view(row) for row in each.run(self._sql["tokens"])])

    async def revoke_token(self, token_id: str, by: By) -> bool:
        """Revoke a token and end its sessions."""

        def act(transaction: Transaction) -> bool:
            names = transaction.run(self._sql["revoke"], {"id": token_id, "now": transaction.now})
            for (name,) in names:
                transaction.change(self._sql["end_sessions"], {"id": token_id})
                self._audit.write(transaction, by, token_revoked(token_id, name))
            return bool(names)

        return await self._database.write(act)

    async def live_token(self, digest: str) -> LiveToken | None:
        """The token of this digest, unless it is revoked or expired."""
        return await self._found("live", digest)

    async def session(self, digest: str) -> LiveToken | None:
        """The token of this session, unless one of them is over."""
        return await self._found("session", digest)

    async def note_use(self, token_id: str) -> None:
        """Write that a token is used now, at most once a minute."""

        def act(transaction: Transaction) -> None:
            times = {"now": transaction.now, "noted_after": transaction.now - span(TOKEN_USE_NOTED_EVERY)}
            transaction.change(self._sql["note_use"], {"id": token_id} | times)

        await self._database.write(act)

    async def open_session(self, digest: str, token_id: str, lifetime: timedelta) -> None:
        """Store a session, and delete expired ones."""

        def act(transaction: Transaction) -> None:
            now, until = transaction.now, after(transaction.now, lifetime)
            transaction.change(self._sql["forget_sessions"], {"now": now})
            row = {"digest": digest, "token_id": token_id, "now": now, "until": until}
            transaction.change(self._sql["open_session"], row)

        await self._database.write(act)

    async def close_session(self, digest: str) -> None:
        """End a session."""
        await self._database.write(lambda each: each.change(self._sql["close_session"], {"digest": digest}))

    async def shared_key(self, name: str, otherwise: str) -> str:
        """The key of this name; made if there is none."""

        def look(transaction: Transaction) -> str | None:
            rows = transaction.run(self._sql["key"], {"name": name})
            return str(rows[0][0]) if rows else None

        def make(transaction: Transaction) -> str:
            row = {"name": name, "value": otherwise, "now": transaction.now}
            transaction.change(self._sql["add_key"], row)
            return look(transaction) or otherwise

        known = await self._database.read(look)
        return await self._database.write(make) if known is None else known

    async def _found(self, statement: str, digest: str) -> LiveToken | None:
        def look(transaction: Transaction) -> LiveToken | None:
            times = {"now": transaction.now, "noted_after": transaction.now - span(TOKEN_USE_NOTED_EVERY)}
            for row in transaction.run(self._sql[statement], {"digest": digest} | times):
                *token, kept, is_noted = row
                return LiveToken(token=_view(tuple(token)), digest=kept, is_noted=bool(is_noted))
            return None

        return await self._database.read(look)


def _view(row: tuple[Any, ...]) -> TokenView:
    token_id, name, scope, created_at, created_by, expires_at, revoked_at, last_used_at = row
    return TokenView(
        id=token_id,
        name=name,
        scope=Scope(scope),
        created_at=from_micros(created_at),
        created_by=created_by,
        expires_at=maybe_moment(expires_at),
        revoked_at=maybe_moment(revoked_at),
        last_used_at=maybe_moment(last_used_at),
    )
