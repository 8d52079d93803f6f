"""The ready-made triage judges answers and exceptions of any HTTP client by what they all have in common."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.jobs import outcome
from perdure.domain.jobs.verdicts import Pending, Permanent, RetryAfter
from perdure.errors import ArgumentError, SettingsError
from perdure.policy.retries.http import HttpTriage, retry_after
from perdure.policy.retries.triage import classify

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TRIAGE = HttpTriage()
POLL = HttpTriage(polling=True)


def answer(status: int, headers: Mapping[str, str] | None = None, *, name: str = "status_code") -> Any:
    return SimpleNamespace(**{name: status, "headers": headers or {}})


def foreign(name: str, *bases: type[BaseException], **fields: object) -> BaseException:
    """An exception as a client library that is not installed would raise it."""
    module, _, title = name.rpartition(".")
    error: BaseException = type(title, bases or (Exception,), {"__module__": module})("it said so")
    for key, value in fields.items():
        setattr(error, key, value)
    return error


def of_urllib(status: int, headers: Mapping[str, str]) -> urllib.error.HTTPError:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return urllib.error.HTTPError("http://localhost/", status, "", message, None)


@pytest.mark.parametrize("status", [200, 201, 204, 304])
def test_e9_a_2xx_is_no_objection(status: int) -> None:
    assert TRIAGE(answer(status)) is None
    assert POLL(answer(status)) is None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 410, 418, 422, 425, 499, 301, 302])
def test_d3_and_e9_a_4xx_is_permanent_at_once(status: int) -> None:
    assert isinstance(TRIAGE(answer(status)), Permanent)
    assert isinstance(POLL(answer(status)), Permanent)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_d3_429_and_5xx_are_retried_or_still_pending(status: int) -> None:
    retry = TRIAGE(answer(status))
    assert isinstance(retry, RetryAfter)
    assert retry.wait is None
    assert str(retry).startswith(f"HTTP {status}")
    assert isinstance(POLL(answer(status)), Pending)


@pytest.mark.parametrize("status", [408, 425])
def test_d3_a_4xx_that_passes_is_retried_by_choice(status: int) -> None:
    chosen = HttpTriage(retry_on=(408, 425))
    assert isinstance(chosen(answer(status)), RetryAfter)
    assert isinstance(HttpTriage(polling=True, retry_on=(408, 425))(answer(status)), Pending)
    assert isinstance(chosen(answer(429)), RetryAfter)
    assert isinstance(chosen(answer(404)), Permanent)


@pytest.mark.parametrize("given", [408, (200,), (503,), ("408",), [True]])
def test_only_lists_of_4xx_can_be_chosen(given: Any) -> None:
    with pytest.raises(SettingsError, match=r"^triage\.retry_on "):
        HttpTriage(retry_on=given)


@pytest.mark.parametrize("name", ["status_code", "status", "code"])
def test_the_status_is_found_under_each_of_its_names(name: str) -> None:
    assert isinstance(TRIAGE(answer(404, name=name)), Permanent)


ANSWERED = [
    foreign("httpx.HTTPStatusError", response=answer(503, {"retry-after": "7"})),
    foreign("requests.exceptions.HTTPError", OSError, response=answer(503, {"Retry-After": "7"})),
    foreign("aiohttp.client_exceptions.ClientResponseError", status=503, headers={"Retry-After": "7"}),
    of_urllib(503, {"Retry-After": "7"}),
]


@pytest.mark.parametrize("error", ANSWERED, ids=lambda error: type(error).__module__)
def test_d3_retry_after_is_honoured_in_the_exceptions_of_each_library(error: BaseException) -> None:
    said = classify(error, TRIAGE, NOW)
    assert isinstance(said, outcome.Failed)
    assert said.retry_after == timedelta(seconds=7)
    assert classify(error, POLL, NOW) == outcome.StillPending(timedelta(seconds=7))


NETWORK = [
    ConnectionRefusedError(),
    TimeoutError(),
    socket.gaierror(),
    ssl.SSLCertVerificationError(),
    http.client.RemoteDisconnected(""),
    http.client.IncompleteRead(b""),
    OSError(errno.ENETUNREACH, "unreachable"),
    urllib.error.URLError("refused"),
    foreign("httpx.ReadTimeout", type("TransportError", (Exception,), {"__module__": "httpx"})),
    foreign("requests.exceptions.ConnectionError", OSError, response=None),
    foreign("requests.exceptions.Timeout", OSError, response=None),
    foreign("aiohttp.client_exceptions.ClientConnectionError"),
    foreign("aiohttp.client_exceptions.ClientPayloadError"),
    foreign("urllib3.exceptions.HTTPError"),
]


@pytest.mark.parametrize("error", NETWORK, ids=repr)
def test_d3_and_e9_network_tls_and_timeouts_are_retried_or_still_pending(error: BaseException) -> None:
    said = classify(error, TRIAGE, NOW)
    assert isinstance(said, outcome.Failed)
    assert said.retry_after is None
    assert isinstance(classify(error, POLL, NOW), outcome.StillPending)


def test_an_address_that_makes_no_sense_is_permanent() -> None:
    error = foreign("requests.exceptions.MissingSchema", ValueError)
    assert isinstance(TRIAGE(error), Permanent)
    assert isinstance(POLL(error), Permanent)


@pytest.mark.parametrize("url", ["example.org/hook", "htp://example.org/hook", "http:///hook"])
def test_an_address_that_urllib_does_not_understand_is_permanent(url: str) -> None:
    with pytest.raises((ValueError, OSError)) as refused:
        urllib.request.urlopen(url)  # noqa: S310 - that is the point
    assert isinstance(TRIAGE(refused.value), Permanent)
    assert isinstance(POLL(refused.value), Permanent)


@pytest.mark.parametrize(
    "error", [KeyError("x"), FileNotFoundError(), PermissionError(), ValueError("unreadable body")]
)
def test_d3_what_is_not_of_the_network_is_an_error_even_while_polling(error: BaseException) -> None:
    assert POLL(error) is None
    assert isinstance(classify(error, POLL, NOW), outcome.Failed)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("1.5", 1.5),
        ("0", 0),
        ("Thu, 01 Jan 2026 12:01:30 GMT", 90),
        ("Thu, 01 Jan 2026 12:01:30 -0000", 90),
        ("Thu Jan  1 12:01:30 2026", 90),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("172800", 86_400),
        ("9" * 5000, 86_400),
        ("Sat, 01 Jan 2028 12:00:00 GMT", 86_400),
    ],
)
def test_d3_retry_after_in_seconds_or_as_a_date_is_honoured_up_to_a_day(text: str, seconds: float) -> None:
    verdict = TRIAGE(answer(429, {"Retry-After": text}))
    assert isinstance(verdict, RetryAfter)
    assert verdict.after(NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5", "nan", "1e9", "Thu, 99 Foo 2026", "Thu, 01 Jan 99999 12:00:00 GMT"])
def test_a_retry_after_that_cannot_be_read_is_ignored(text: str) -> None:
    assert retry_after({"Retry-After": text}) is None
    assert isinstance(TRIAGE(answer(429, {"Retry-After": text})), RetryAfter)


@given(st.text())
def test_no_retry_after_header_breaks_the_triage(text: str) -> None:
    verdict = TRIAGE(answer(503, {"Retry-After": text}))
    assert isinstance(verdict, RetryAfter)
    wait = verdict.after(NOW)
    assert wait is None or timedelta(0) <= wait <= timedelta(days=1)


def test_limits_and_statuses_are_settings() -> None:
    triage = HttpTriage(at_most="1m", retry_on=frozenset({409}))
    verdict = triage(answer(409, {"retry-after": "3600"}))
    assert isinstance(verdict, RetryAfter)
    assert verdict.after(NOW) == timedelta(minutes=1)
    with pytest.raises(SettingsError, match=r"^triage\.at_most "):
        HttpTriage(at_most="long")


def test_check_hands_a_good_answer_back_and_raises_the_verdict_on_a_bad_one() -> None:
    good = answer(200)
    assert TRIAGE.check(good) is good
    with pytest.raises(Permanent, match="HTTP 404 Not Found"):
        TRIAGE.check(answer(404))


def test_what_has_no_status_is_no_answer() -> None:
    with pytest.raises(ArgumentError, match=r"^response must have a status_code"):
        TRIAGE(object())
    with pytest.raises(ArgumentError, match=r"^response "):
        TRIAGE(answer(7))
