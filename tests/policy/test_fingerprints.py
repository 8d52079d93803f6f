"""Fingerprints: the same trouble has one, whatever numbers and ids it names."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.policy.fingerprints import GAP, fingerprint, normalised

NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(0, 10**9).map(lambda number: f"{number:,}"),
)
VARIABLE = st.one_of(
    NUMBERS,
    st.uuids().map(str),
    st.uuids().map(lambda each: each.hex),
    st.integers(0, 2**64).map(hex),
    st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26).filter(lambda t: any(c.isdigit() for c in t)),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
    st.text("abcdefghijklmnopqrstuvwxyz ./-", max_size=20).map(lambda text: f"'{text}'"),
    st.text("abcdefghijklmnopqrstuvwxyz'", max_size=20).map(lambda text: f'"{text}"'),
)
WORDS = st.lists(
    st.sampled_from(["gateway", "did not answer", "in", "user", "failed:", "can't", "timeout"]), min_size=2
)


@given(words=WORDS, first=VARIABLE, second=VARIABLE)
def test_the_same_error_with_other_values_has_the_same_fingerprint(words: list[str], first: str, second: str) -> None:
    def said(value: str) -> str:
        return f" {value} ".join(words)

    one, other = (fingerprint("charge", "TimeoutError", said(value)) for value in (first, second))
    assert one == other
    assert words[0] in one.message
    assert first not in one.message


@given(message=st.text(max_size=5_000))
def test_any_message_has_a_short_fingerprint_that_stays(message: str) -> None:
    found = fingerprint("charge", "ValueError", message)
    assert found == fingerprint("charge", "ValueError", message)
    assert len(found.hash) == 12
    assert len(found.message) <= 300
    assert "\n" not in found.message


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("gateway eu-1 did not answer in 30 s", "gateway eu-… did not answer in … s"),
        ("gateway eu-12 did not answer in 2.5 s", "gateway eu-… did not answer in … s"),
        ("HTTP 503 from https://api.example.com/v1/users/42?x=1", "HTTP … from https://…"),
        ('connection to "db01.local" (10.0.0.7), port 5432 failed', "connection to … (…), port … failed"),
        ("<Invoice object at 0x7f3a2b00> has no total", "<Invoice object at …> has no total"),
        ("can't open '/srv/in/7.csv': it isn't there", "can't open …: it isn't there"),
        ("user42 not found in [1, 2, 3]", "user… not found in […]"),
        ("no file /tmp/tmpab_xyz/in.csv", "no file …"),
        ("waited 30s of 45s", "waited …s of …s"),
        (f"job {uuid.UUID(int=7)} is gone\n  at line 12", "job … is gone at line …"),
        ("mail to ada@example.org refused", "mail to … refused"),
        (
            "worker web-7d-xkcd died while it held the job (silent for 31s)",
            "worker … died while it held the job (silent for …s)",
        ),
        ("", ""),
    ],
)
def test_what_people_read_of_a_message(message: str, kept: str) -> None:
    assert normalised(message) == kept


def test_kind_type_and_words_distinguish_errors() -> None:
    known = {
        fingerprint(kind, error_type, message).hash
        for kind in ("charge", "mail")
        for error_type in ("TimeoutError", "ValueError")
        for message in ("no answer", "no address")
    }
    assert len(known) == 8


def test_a_huge_message_is_cut() -> None:
    assert normalised("word " * 100_000).endswith(GAP)
