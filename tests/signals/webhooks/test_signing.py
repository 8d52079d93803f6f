"""E9: a request proves who sent it and when, and a receiver can check both."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from perdure import ArgumentError, Secret
from perdure.signals.webhooks.signing import signed_headers
from perdure.webhooks import SignatureRefused, delivery_headers, signature, verify

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BODY = b'{"id":1}'


def test_e9_the_signature_is_hmac_sha256_over_timestamp_and_body() -> None:
    stamp = int(NOW.timestamp())
    expected = hmac.new(b"s3cret", f"{stamp}.".encode() + BODY, hashlib.sha256).hexdigest()
    headers = signed_headers(Secret("s3cret"), BODY, NOW)
    assert headers == {"X-Webhook-Timestamp": str(stamp), "X-Webhook-Signature": f"sha256={expected}"}
    assert signature("s3cret", stamp, BODY) == f"sha256={expected}"
    verify("s3cret", {name.upper(): value for name, value in headers.items()}, BODY, now=NOW)


def test_e9_a_changed_an_old_and_an_unsigned_request_are_refused() -> None:
    headers = signed_headers("s3cret", BODY, NOW)
    for seconds in (-300, 300):
        verify("s3cret", headers, BODY, now=NOW + timedelta(seconds=seconds))
    for seconds in (-301, 301):
        with pytest.raises(SignatureRefused, match="more than 300 s"):
            verify("s3cret", headers, BODY, now=NOW + timedelta(seconds=seconds))
    verify("s3cret", headers, BODY, "1h", now=NOW + timedelta(minutes=50))
    with pytest.raises(SignatureRefused, match="does not match"):
        verify("s3cret", headers, BODY + b" ", now=NOW)
    with pytest.raises(SignatureRefused, match="does not match"):
        verify("s3cret", {**headers, "X-Webhook-Timestamp": str(int(NOW.timestamp()) + 1)}, BODY, now=NOW)
    for broken in ("", "12 ", "-1", "9" * 400, "\u0661"):
        with pytest.raises(SignatureRefused, match="seconds since 1970"):
            verify("s3cret", {**headers, "X-Webhook-Timestamp": broken}, BODY, now=NOW)
    for broken in ("", "sha256=", "sha1=abc", "sha256=é"):
        with pytest.raises(SignatureRefused, match="does not match"):
            verify("s3cret", {**headers, "X-Webhook-Signature": broken}, BODY, now=NOW)


def test_while_a_secret_is_replaced_both_are_accepted() -> None:
    old, new = signed_headers("old", BODY, NOW), signed_headers("new", BODY, NOW)
    for headers in (old, new):
        verify(["new", "old"], headers, BODY, now=NOW)
    with pytest.raises(SignatureRefused):
        verify(["new", "newer"], old, BODY, now=NOW)
    with pytest.raises(SignatureRefused):
        verify([], old, BODY, now=NOW)


def test_an_empty_secret_is_refused_on_both_sides() -> None:
    with pytest.raises(ArgumentError, match="secret must not be empty"):
        signed_headers("", BODY, NOW)
    with pytest.raises(ArgumentError, match="secret must not be empty"):
        verify(["new", ""], signed_headers("new", BODY, NOW), BODY, now=NOW)


def test_the_headers_of_a_delivery_name_it_and_its_attempt() -> None:
    assert delivery_headers("d1", 2, 5) == {
        "X-Webhook-ID": "d1",
        "X-Webhook-Attempt": "2",
        "X-Webhook-Max-Attempts": "5",
    }
    assert "X-Webhook-Max-Attempts" not in delivery_headers("d1", 2, None)
