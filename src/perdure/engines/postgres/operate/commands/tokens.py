"""Access tokens and sessions. A request only reads, except to note the use of a token."""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.clock import Clock
from perdure.domain.operate.access import Scope, TokenView
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.arrays import storable
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.audit_details import token_created, token_revoked
from perdure.storage.operate.tokens import LiveToken, NewToken


class TokenPart:
    """Tokens and sessions of the store."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/commands/tokens.sql")
        self._pool = pool
        self._clock = clock
        self._audit = Audit(naming, clock)

    async def add_token(self, token: NewToken, by: By) -> TokenView | None:
        """Store a token; None if its name is taken."""
        params: Params = {
            "id": token.id,
            "name": token.name,
            "scope": token.scope.value,
            "digest": token.digest,
            "actor": storable(by.actor),
            "expires_at": token.expires_at,
            "now": self._now(),
        }

        async def work(wire: Wire) -> TokenView | None:
            rows = await wire.fetch(self._statements["add"], params)
            if not rows:
                return None
            await self._audit.write(wire, by, token_created(token))
            return _view(rows[0])

        return await self._pool.transaction(work)

    async def tokens(self) -> list[TokenView]:
        """All tokens, oldest first."""
        return [_view(row) for row in await self._pool.rows(self._statements["tokens"], {})]

    async def revoke_token(self, token_id: str, by: By) -> bool:
        """Revoke a token and end its sessions."""

        async def work(wire: Wire) -> bool:
            names = await wire.fetch(self._statements["revoke"], {"id": token_id, "now": self._now()})
            for (name,) in names:
                await self._audit.write(wire, by, token_revoked(token_id, name))
            return bool(names)

        return await self._pool.transaction(work)

    async def live_token(self, digest: str) -> LiveToken | None:
        """The token of this digest, unless it is revoked or expired."""
        return await self._found("live", digest)

    async def session(self, digest: str) -> LiveToken | None:
        """The token of this session, unless one of them is over."""
        return await self._found("session", digest)

    async def note_use(self, token_id: str) -> None:
        """Write that a token is used now, at most once a minute."""
        await self._pool.rows(self._statements["note_use"], {"id": token_id, "now": self._now()})

    async def open_session(self, digest: str, token_id: str, lifetime: timedelta) -> None:
        """Store a session, and delete expired ones."""
        params: Params = {
            "digest": digest,
            "token_id": token_id,
            "lifetime": lifetime.total_seconds(),
            "now": self._now(),
        }
        await self._pool.rows(self._statements["open_session"], params)

    async def close_session(self, digest: str) -> None:
        """End a session."""
        await self._pool.rows(self._statements["close_session"], {"digest": digest})

    async def shared_key(self, name: str, otherwise: str) -> str:
        """The key of this name; made if there is none."""
        rows = await self._pool.rows(self._statements["key"], {"name": name})
        if not rows:
            row = {"name": name, "value": otherwise, "now": self._now()}
            await self._pool.rows(self._statements["add_key"], row)
            rows = await self._pool.rows(self._statements["key"], {"name": name})
        return str(rows[0][0])

    async def _found(self, statement: str, digest: str) -> LiveToken | None:
        rows = await self._pool.rows(self._statements[statement], {"digest": digest, "now": self._now()})
        if not rows:
            return None
        *token, kept, is_noted = rows[0]
        return LiveToken(token=_view(tuple(token)), digest=kept, is_noted=is_noted)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _view(row: Row) -> TokenView:
    token_id, name, scope, created_at, created_by, expires_at, revoked_at, last_used_at = row
    return TokenView(
        id=token_id,
        name=name,
        scope=Scope(scope),
        created_at=created_at,
        created_by=created_by,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=last_used_at,
    )
