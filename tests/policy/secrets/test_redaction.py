"""What is masked in documents and in texts, and what is left alone."""

from __future__ import annotations

import json

import msgspec
import pytest

from perdure import Secret
from perdure.domain.jobs.outcome import Failure
from perdure.kinds.encoding import encode, from_plain
from perdure.policy.keys.grouping import as_json
from perdure.policy.secrets.redaction import (
    is_secret_name,
    known_secrets,
    redact_document,
    redact_failure,
    redact_text,
)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWORD",
        "db_password",
        "dbPassword",
        "X-Api-Key",
        "apikey",
        "accessToken",
        "client_secret",
        "token",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["tokens", "max_tokens", "passwords_changed", "keyboard", "key", "author", "", 7, None]
)
def test_other_names_are_left_alone(name: object) -> None:
    assert not is_secret_name(name)


def test_further_names_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact_document('{"iban":"DE02"}') == '{"iban":"DE02"}'
    monkeypatch.setenv("PERDURE_REDACT", "iban, ssn")
    assert redact_document('{"iban":"DE02","user_ssn":1}') == '{"iban":"***","user_ssn":"***"}'
    assert redact_text("iban=DE02") == "iban=***"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('{"card":{"$secret":"4111"}}', '{"card":"***"}'),
        ('{"a":[{"password":"x","n":1}]}', '{"a":[{"password":"***","n":1}]}'),
        ('{"token":["a","b"],"secret":null,"has_token":true}', '{"token":"***","secret":null,"has_token":true}'),
        ('{"url":"https://bob:hunter2@example.com/?token=abc"}', '{"url":"https://bob:***@example.com/?token=***"}'),
        ('{"n": 1.50, "key": "k"}', '{"n": 1.50, "key": "k"}'),
        ("not json password=hunter2", "not json password=***"),
    ],
)
def test_documents_are_masked_and_others_stay_as_they_are(stored: str, shown: str) -> None:
    assert redact_document(stored) == shown
    assert redact_document(None) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("login(password='hunter2', user='bob')", "login(password=***, user='bob')"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": ***, "n": 1}'),
        ("{'token': 'abc'}", "{'token': ***}"),
        ("Authorization: Bearer abcdefghijk", "Authorization: ***"),
        ("sent Bearer abcdefghijk to it", "sent Bearer *** to it"),
        ("GET https://x.example/?access_token=abc&n=1", "GET https://x.example/?access_token=***&n=1"),
        ("postgresql://bob:hunter2@db/x", "postgresql://bob:***@db/x"),
        ("pdr_" + "a" * 43, "***"),
    ],
)
def test_texts_are_masked(text: str, shown: str) -> None:
    assert redact_text(text) == shown
    assert redact_text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: ','",
        "Invalid token at line 3",
        "the secret of life",
        "KeyError: 'x'",
        "basic auth failed",
        "",
    ],
)
def test_ordinary_sentences_stay_readable(text: str) -> None:
    assert redact_text(text) == text


def test_known_secrets_are_struck_in_every_look() -> None:
    known = known_secrets('{"a":{"$secret":"p@ss \\"w\'ord"},"password":"long enough","token":"short","n":5}', None)
    assert "short" not in known
    texts = ["p@ss \"w'ord", "p%40ss%20%22w%27ord", json.dumps("p@ss \"w'ord"), repr("p@ss \"w'ord"), "long enough"]
    assert not any("w'ord" in redact_text(text, known) or "w%27ord" in redact_text(text, known) for text in texts)
    assert redact_text("long enough", known) == "***"
    failure = redact_failure(Failure("E", "long enough", "Traceback long enough"), known)
    assert failure == Failure("E", "***", "Traceback ***")


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {secret:>20} {[secret]} {vars(type(secret))}"
    assert secret.reveal() == "hunter2"
    assert [secret == other for other in (Secret("hunter2"), Secret("x"), object())] == [True, False, False]
    assert len({secret, Secret("hunter2"), Secret("x")}) == 2
    assert b"hunter2" not in as_json("unique.by", [secret])
    assert as_json("unique.by", [secret]) == as_json("unique.by", [Secret("hunter2")])
    assert as_json("unique.by", [secret]) != as_json("unique.by", [Secret("x")])


def test_a_secret_is_stored_with_its_mark_and_read_back_as_its_type() -> None:
    stored = encode({"card": Secret("4111")})
    assert stored == '{"card":{"$secret":"4111"}}'
    for document in (stored, '{"card":"4111"}'):
        read = msgspec.json.decode(document, type=dict[str, Secret[str]], dec_hook=from_plain)
        assert read == {"card": Secret("4111")}
    with pytest.raises(msgspec.ValidationError, match="Expected `int`, got `str`"):
        msgspec.json.decode(stored, type=dict[str, Secret[int]], dec_hook=from_plain)
