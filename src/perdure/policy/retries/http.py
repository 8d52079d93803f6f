"""A ready-made triage for HTTP responses and exceptions of any client library.

It uses only what all of them have: a status, headers, a response within an exception, and the names of types. So it
works with httpx, requests, aiohttp, urllib and urllib3 without importing any of them.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, TypeVar, cast

from perdure.domain.duration import LONGEST_DURATION, Duration, parse_duration
from perdure.domain.jobs.verdicts import Pending, Permanent, RetryAfter, Verdict
from perdure.errors import ArgumentError, SettingsError
from perdure.policy.failures import lineage

R = TypeVar("R")

LONGEST_ASKED: Final = timedelta(days=1)

_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_STATUSES: Final = range(100, 600)
_CLIENT_ERRORS: Final = range(400, 500)
_UNREACHABLE: Final = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})
_NETWORK: Final = frozenset(
    {
        "ConnectionError",
        "TimeoutError",
        "EOFError",
        "socket.gaierror",
        "socket.herror",
        "ssl.SSLError",
        "http.client.HTTPException",
        "urllib.error.URLError",
        "urllib3.exceptions.HTTPError",
        "httpx.TransportError",
        "httpcore.NetworkError",
        "httpcore.ProtocolError",
        "httpcore.TimeoutException",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "requests.exceptions.ChunkedEncodingError",
        "aiohttp.client_exceptions.ClientConnectionError",
        "aiohttp.client_exceptions.ClientPayloadError",
    }
)
_BAD_ADDRESS: Final = frozenset(
    {
        "httpx.InvalidURL",
        "httpx.UnsupportedProtocol",
        "requests.exceptions.InvalidSchema",
        "requests.exceptions.InvalidURL",
        "requests.exceptions.MissingSchema",
        "aiohttp.client_exceptions.InvalidURL",
        "urllib3.exceptions.LocationValueError",
        "http.client.InvalidURL",
    }
)
_BAD_ADDRESS_IN_URLLIB: Final = re.compile(r"(<urlopen error )?(unknown url type: |no host given)")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTriage:
    """Judge responses and exceptions of HTTP clients: ``@app.job(triage=HttpTriage())``.

    - 2xx and 304: no objection;
    - 429, 5xx, network, TLS and timeouts: retry, after Retry-After if the response has one, but never later than
      `at_most`; with `polling` they mean that the result is still pending, which uses no attempt;
    - any other 4xx and 3xx, and an invalid address: permanent.

    `retry_on` names 4xx that are treated like 429: ``HttpTriage(retry_on=(408, 425))``. The default of a day for
    `at_most` lets a daily quota recover, and limits the harm of a wrong header.
    """

    polling: bool = False
    at_most: Duration = LONGEST_ASKED
    retry_on: Collection[int] = ()

    def __post_init__(self) -> None:
        parse_duration("triage.at_most", self.at_most, error=SettingsError)
        given: object = self.retry_on
        if not isinstance(given, Collection) or not all(_is_client_error(status) for status in given):
            raise SettingsError(
                "triage.retry_on", f"must list statuses from 400 to 499, such as (408, 425), got {given!r}"
            )

    def __call__(self, happened: object) -> Verdict | None:
        """Judge a response or an exception; None: no objection or, for an exception, no opinion."""
        answer = _answer(happened)
        if answer is not None:
            return self._of_status(_status(answer), retry_after(_headers(answer)))
        if not isinstance(happened, BaseException):
            raise ArgumentError("response", f"must have a status_code, status or code, got {type(happened).__name__}")
        names = lineage(type(happened))
        if not _BAD_ADDRESS.isdisjoint(names) or _is_bad_address_of_urllib(happened):
            return Permanent(str(happened))
        if not _NETWORK.isdisjoint(names) or getattr(happened, "errno", None) in _UNREACHABLE:
            return self._again(None, str(happened))
        return None

    def check(self, response: R) -> R:
        """Return the response, or raise the verdict on it: ``body = triage.check(await get(url)).json()``."""
        verdict = self(response)
        if verdict is not None:
            raise verdict
        return response

    def _of_status(self, status: int, asked: timedelta | datetime | None) -> Verdict | None:
        if status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.NOT_MODIFIED:
            return None
        is_passing = status == HTTPStatus.TOO_MANY_REQUESTS or status in self.retry_on
        if is_passing or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return self._again(asked, _named(status))
        return Permanent(_named(status))

    def _again(self, asked: timedelta | datetime | None, message: str) -> Verdict:
        verdict = Pending if self.polling else RetryAfter
        return verdict(asked, message, at_most=self.at_most)


def retry_after(headers: Mapping[str, str]) -> timedelta | datetime | None:
    """What a Retry-After header asks for: a wait or an instant; None if there is no readable one."""
    text = next((str(value).strip() for name, value in headers.items() if str(name).lower() == "retry-after"), "")
    if _SECONDS.fullmatch(text):
        return timedelta(seconds=min(float(text), LONGEST_DURATION.total_seconds()))
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _is_client_error(status: object) -> bool:
    return isinstance(status, int) and status in _CLIENT_ERRORS


def _answer(happened: object) -> object:
    """The object that has a status: the response within an exception, or the value itself; None if neither has."""
    for candidate in (getattr(happened, "response", None), happened):
        if _status(candidate):
            return candidate
    return None


def _is_bad_address_of_urllib(error: BaseException) -> bool:
    """Whether urllib complains about the address: it has no type for that, only messages."""
    return isinstance(error, ValueError | OSError) and bool(_BAD_ADDRESS_IN_URLLIB.match(str(error)))


def _status(answer: object) -> int:
    for name in ("status_code", "status", "code"):
        value = getattr(answer, name, None)
        if isinstance(value, int) and value in _STATUSES:
            return int(value)
    return 0


def _headers(answer: object) -> Mapping[str, str]:
    headers = getattr(answer, "headers", None)
    return cast("Mapping[str, str]", headers) if hasattr(headers, "items") else {}


def _named(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
