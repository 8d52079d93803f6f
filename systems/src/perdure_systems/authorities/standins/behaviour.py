"""How a stand-in behaves. All of it can be changed while it runs."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec


class Reply(msgspec.Struct, frozen=True):
    """An answer that takes the place of the usual one."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}


class Behaviour(msgspec.Struct):
    """The knobs of a stand-in.

    Orders are issued at their `approve_after`-th poll, counted from 1; None leaves them for `approve(order)`. `replies`
    are given to status requests instead of the usual answer, one after the other; `always` is given to all of them.
    """

    latency: float = 0.0  # seconds before every answer
    drip: float = 0.0  # seconds between two bytes of every answer
    approve_after: int | None = 1
    pending_word: str | None = None  # in place of the authority's own
    rejected_word: str | None = None  # every order is refused in this word
    issued_without_certificate: bool = False
    not_ready: int = 0  # Sectigo: so many collects answer 400 with -183
    foreign_chain: bool = False  # certificates come from a root that is not trusted
    echo_secrets: bool = False  # errors repeat the headers they were asked with
    always: Reply | None = None
    place: Reply | None = None  # given to every new order
    replies: deque[Reply] = msgspec.field(default_factory=deque)

    def fail_next(self, times: int, status: int = 503, **headers: str) -> None:
        """Answer the next status requests with an error."""
        self.replies.extend(Reply(status, b'{"error":"try later"}', headers) for _ in range(times))

    def rate_limit_for_ever(self, retry_after: str | None = None) -> None:
        """Answer every status request with 429."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self.always = Reply(429, b'{"error":"too many requests"}', headers)

    def break_next(self, body: bytes = b"<html>oops") -> None:
        """Answer the next status request with 200 and a body that is no JSON."""
        self.replies.append(Reply(200, body))


class Seen(msgspec.Struct, frozen=True):
    """A request that reached a stand-in."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    is_status: bool = False  # it asked for the status of an order
    port: int = 0  # of the client: requests on one connection have the same
