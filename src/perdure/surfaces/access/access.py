"""Joins the parts of access control: settings, sessions, login, and the identity of a caller."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from perdure.clock import Clock, SystemClock
from perdure.domain.operate.access import Scope, TokenView
from perdure.errors import StoreRefused
from perdure.operate.commands.tokens import check_token
from perdure.storage.port import Store
from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.caller import LOCAL, Caller
from perdure.surfaces.access.login.csrf import csrf_of
from perdure.surfaces.access.login.page import Login, LoginPage, plain_login_page
from perdure.surfaces.access.login.rate import LoginRate
from perdure.surfaces.access.login.sessions import SESSION, Sessions, read_cookie
from perdure.surfaces.access.requests.visit import Visit
from perdure.surfaces.access.settings import AccessSettings

OpenStore = Callable[[], Awaitable[Store]]
"""Gives the open store of the running event loop."""

_DEFAULTS: Final = AccessSettings()
_KEY: Final = "forms"
_BEARER: Final = "bearer"
_BY_SETTING: Final = "its settings say so"


class Access:
    """Identifies callers. `login_page` renders the login page; `style` is the style sheet's path for other pages.

    While `why_read_only` names a reason, or the settings say so, callers may only read.
    """

    def __init__(
        self,
        store: OpenStore,
        settings: AccessSettings = _DEFAULTS,
        *,
        login_page: LoginPage = plain_login_page,
        style: str = "",
        why_read_only: Callable[[], str | None] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.settings = settings
        self.store = store
        self.style = style
        self._why_read_only = why_read_only
        self._sessions = Sessions(clock, settings.session_lifetime)
        rate = LoginRate(
            clock,
            of_one=settings.login_failures,
            of_all=settings.login_failures_of_all,
            window=settings.login_window,
        )
        self.login = Login(self._sessions, rate, login_page, settings.session_lifetime)
        self._own_key = secrets.token_hex(32)
        self._key: str | None = None

    async def key(self) -> str:
        """The key that signs forms of callers without a session; the same in all processes on this database."""
        if self._key is None:
            with suppress(StoreRefused):  # the database is read-only: use a key of this process
                self._key = await (await self.store()).shared_key(_KEY, self._own_key)
        return self._key or self._own_key

    async def caller(self, visit: Visit) -> Caller | None:
        """The caller, by bearer token, by session, or from this machine; else None.

        Raises Refused (401) for an Authorization header without a valid token: such a request never falls back to a
        session.
        """
        given = visit.headers.getlist("authorization")
        if given:
            return self._known(visit, await self._by_header(given), csrf=None)
        if visit.is_mcp:
            return self._reader(visit)
        if secret := read_cookie(visit, SESSION):
            token = await self._sessions.find(await self.store(), secret)
            if token is not None:
                return self._known(visit, token, csrf=csrf_of(secret, "session"))
        if visit.is_local and not self.settings.requires_token:
            csrf = csrf_of(await self.key(), LOCAL)
            return self._limited(Caller(name=LOCAL, scope=Scope.ADMIN, source=visit.source, csrf=csrf))
        return None

    async def _by_header(self, given: list[str]) -> TokenView:
        scheme, _, secret = given[0].partition(" ")
        token = None
        if len(given) == 1 and scheme.lower() == _BEARER:
            token = await check_token(await self.store(), secret.strip())
        if token is None:
            raise Refused(
                401,
                "Unauthorized",
                "The token is unknown, revoked or expired. Send Authorization: Bearer pdr_…; "
                "create a token with `perdure token create`.",
                {"WWW-Authenticate": 'Bearer realm="perdure", error="invalid_token"'},
            )
        return token

    def _reader(self, visit: Visit) -> Caller | None:
        """An agent on this machine without a token: it may only read. Browser sessions are not valid for agents."""
        if not visit.is_local or self.settings.requires_token:
            return None
        return self._limited(Caller(name=LOCAL, scope=Scope.READ, source=visit.source))

    def _known(self, visit: Visit, token: TokenView, csrf: str | None) -> Caller:
        has_session = csrf is not None
        return self._limited(
            Caller(name=token.name, scope=token.scope, source=visit.source, csrf=csrf, has_session=has_session)
        )

    def _limited(self, caller: Caller) -> Caller:
        why = self._why_read_only() or (_BY_SETTING if self.settings.read_only else None)
        return caller if why is None else replace(caller, scope=caller.scope.capped(Scope.READ), why_read_only=why)
