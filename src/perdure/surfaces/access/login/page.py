"""The login page, logging in with a token, and logging out."""

from __future__ import annotations

import logging
import math
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from html import escape
from typing import Final
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from perdure.domain.operate.audit import By, Note
from perdure.errors import StoreError
from perdure.operate.commands.tokens import check_token
from perdure.storage.port import Store
from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.login.csrf import Receive, csrf_of, form_fields, is_form, matches, read_body
from perdure.surfaces.access.login.rate import LoginRate
from perdure.surfaces.access.login.sessions import LOGIN, SESSION, Sessions, read_cookie, write_cookie
from perdure.surfaces.access.requests.visit import Visit

_log = logging.getLogger("perdure.access")

_FORM_LIFETIME: Final = timedelta(hours=1)
_GONE: Final = timedelta(0)
_NEXT_PATH_LIMIT_CHARACTERS: Final = 2_000
_PLACE: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # printable, no backslash, no other host
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Log in - perdure</title></head>
<body><main><h1>perdure</h1>{problem}
<form method="post" action="{action}">
<input type="hidden" name="_csrf" value="{csrf}"><input type="hidden" name="next" value="{next}">
<label>Token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button type="submit">Log in</button>
</form><p>A token is made with <code>perdure token create --name NAME --scope read|operate|admin</code>.</p>
</main></body></html>
"""


class LoginView(Struct, frozen=True, kw_only=True):
    """A login page: its form posts `token`, `_csrf` and `next` to `action`; `problem` is set after a failed login."""

    action: str
    next: str
    csrf: str
    prefix: str
    problem: str | None = None


LoginPage = Callable[[LoginView], str]
"""Renders the login page as HTML."""


def plain_login_page(view: LoginView) -> str:
    """A login page without a style."""
    problem = f'<p role="alert">{escape(view.problem)}</p>' if view.problem else ""
    return _PAGE.format(problem=problem, action=escape(view.action), csrf=escape(view.csrf), next=escape(view.next))


class Login:
    """Answers /login and /logout."""

    def __init__(self, sessions: Sessions, rate: LoginRate, page: LoginPage, lifetime: timedelta) -> None:
        self._sessions = sessions
        self._rate = rate
        self._page = page
        self._lifetime = lifetime

    def show(self, visit: Visit, key: str) -> Response:
        """The login page."""
        asked = dict(parse_qsl(visit.query)).get("next", "")
        return self._form(visit, key, safe_next(asked, visit))

    async def log_in(self, visit: Visit, store: Store, key: str, receive: Receive) -> Response:
        """Check a token, open a new session, and redirect to the requested page."""
        if not is_form(visit):
            raise Refused(415, "Unsupported Media Type", "Log in with a form, or send Authorization: Bearer pdr_…")
        fields = form_fields(await read_body(receive))
        goal = safe_next(fields.get("next", ""), visit)
        nonce = read_cookie(visit, LOGIN)
        if nonce is None or not matches(fields.get("_csrf"), csrf_of(key, f"login {nonce}")):
            return self._form(visit, key, goal, "The page was out of date. Please try again.", 403)
        if wait := self._rate.wait(visit.address):
            _log.warning("login refused, too many failures: %s", visit.source)
            seconds = math.ceil(wait)
            answer = self._form(visit, key, goal, f"Too many failed attempts. Try again in {seconds} s.", 429)
            answer.headers["Retry-After"] = str(seconds)
            return answer
        token = await check_token(store, fields.get("token", "").strip())
        if token is None:
            _log.warning("login failed: %s", visit.source)
            return self._form(visit, key, goal, "This token is unknown, revoked or expired.", 401)
        self._rate.forgive(visit.address)
        await self._end(visit, store)  # never reuse an earlier session: it may have been planted
        secret = await self._sessions.open(store, token)
        with suppress(StoreError):  # the database is read-only
            await store.record(By(token.name, source=visit.source), Note(action="login", details={"token": token.id}))
        answer = RedirectResponse(goal, 303)
        answer.headers.append("Set-Cookie", write_cookie(visit, SESSION, secret, self._lifetime))
        answer.headers.append("Set-Cookie", write_cookie(visit, LOGIN, "", _GONE))
        return answer

    async def log_out(self, visit: Visit, store: Store) -> Response:
        """End the session."""
        await self._end(visit, store)
        answer = RedirectResponse(visit.at("/login"), 303)
        answer.headers.append("Set-Cookie", write_cookie(visit, SESSION, "", _GONE))
        return answer

    async def _end(self, visit: Visit, store: Store) -> None:
        if secret := read_cookie(visit, SESSION):
            with suppress(StoreError):
                await self._sessions.close(store, secret)

    def _form(self, visit: Visit, key: str, goal: str, problem: str | None = None, status: int = 200) -> Response:
        nonce = secrets.token_urlsafe(16)
        view = LoginView(
            action=visit.at("/login"),
            next=goal,
            csrf=csrf_of(key, f"login {nonce}"),
            prefix=visit.prefix,
            problem=problem,
        )
        answer = Response(self._page(view), status, media_type="text/html")
        answer.headers.append("Set-Cookie", write_cookie(visit, LOGIN, nonce, _FORM_LIFETIME))
        return answer


def safe_next(asked: str, visit: Visit) -> str:
    """The URL to open after the login: a page of this desk, else its first page."""
    inside = asked == visit.prefix or asked.startswith(f"{visit.prefix}/")
    known = inside and len(asked) <= _NEXT_PATH_LIMIT_CHARACTERS and _PLACE.fullmatch(asked)
    return asked if known and not asked.startswith(visit.at("/login")) else visit.home
