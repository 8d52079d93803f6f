"""A browser in miniature: requests as raw ASGI scopes, with cookies kept between them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import msgspec

from perdure.surfaces.access.middleware import AsgiApp

PAGE = {"accept": "text/html"}


class Answered:
    """What the application answered."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.raw = [(name.decode().lower(), value.decode("latin-1")) for name, value in headers]
        self.headers = dict(self.raw)
        self.text = body.decode()

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.text)

    @property
    def cookies(self) -> list[str]:
        """The Set-Cookie headers."""
        return [value for name, value in self.raw if name == "set-cookie"]


class Browser:
    """Sends requests from one address, with the cookies that it was given."""

    def __init__(
        self,
        app: AsgiApp,
        *,
        address: str | None = "127.0.0.1",
        host: str = "localhost:8484",
        prefix: str = "",
        scheme: str = "http",
    ) -> None:
        self.app = app
        self.address = address
        self.host = host
        self.prefix = prefix
        self.scheme = scheme
        self.cookies: dict[str, str] = {}

    async def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        *,
        form: Mapping[str, str] | None = None,
        body: bytes = b"",
        **more: Any,
    ) -> Answered:
        """Send one request; `more` is put into the scope."""
        path, _, query = target.partition("?")
        told = {"host": self.host, **(headers or {})}
        if form is not None:
            body, told["content-type"] = urlencode(form).encode(), "application/x-www-form-urlencoded"
        if self.cookies:
            told.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": self.scheme,
            "path": self.prefix + path,
            "root_path": self.prefix,
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in told.items()],
            "client": (self.address, 50_000) if self.address else None,
            "server": ("127.0.0.1", 8484),
        }
        answer = await send(self.app, scope | more, body)
        for text in answer.cookies:
            for name, morsel in SimpleCookie(text).items():
                self.cookies.pop(name, None)
                if morsel["max-age"] != "0":
                    self.cookies[name] = morsel.value
        return answer

    async def get(self, target: str, headers: Mapping[str, str] | None = None, **more: Any) -> Answered:
        """Ask for a page."""
        return await self.ask("GET", target, PAGE | dict(headers or {}), **more)

    async def post(self, target: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Answered:
        """Send a form."""
        return await self.ask("POST", target, PAGE | dict(headers or {}), form=form)


async def send(app: AsgiApp, scope: dict[str, Any], body: bytes = b"") -> Answered:
    """Run one request through an application."""
    sent: list[MutableMapping[str, Any]] = []
    pieces = [body[start : start + 1_000] for start in range(0, len(body), 1_000)] or [b""]

    async def receive() -> MutableMapping[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def take(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, take)
    start, *rest = sent
    return Answered(start["status"], list(start["headers"]), b"".join(part.get("body", b"") for part in rest))
