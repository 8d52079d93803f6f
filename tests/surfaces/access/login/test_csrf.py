"""The value that proves that a page of the desk made a form."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.surfaces.access.requests.test_origins import visit

from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.login.csrf import (
    FIELD,
    HEADER,
    Message,
    Receive,
    csrf_of,
    form_fields,
    matches,
    read_body,
    require_csrf,
)

FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
VALUE = csrf_of("secret", "session")


def receiving(*parts: bytes) -> Receive:
    """A body in these parts, then the end of the connection."""
    messages: Iterator[Message] = iter(
        [{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts]
    )

    async def receive() -> Message:
        return next(messages, {"type": "http.disconnect"})

    return receive


def test_a_value_is_of_one_secret_and_one_purpose_and_reveals_neither() -> None:
    assert csrf_of("secret", "session") == VALUE
    assert len({VALUE, csrf_of("other", "session"), csrf_of("secret", "login")}) == 3
    assert "secret" not in VALUE
    assert matches(VALUE, VALUE)
    assert not matches(None, VALUE)
    assert not matches("ä", VALUE)


async def test_a_form_with_the_value_is_handed_on_whole() -> None:
    body = f"a=1&{FIELD}={VALUE}".encode()
    receive = await require_csrf(visit(FORM, method="POST"), receiving(body[:9], body[9:]), VALUE)
    assert await read_body(receive) == body
    assert (await receive())["type"] == "http.disconnect"


async def test_a_script_sends_the_value_in_a_header_and_its_body_is_not_read() -> None:
    receive = receiving(b"{}")
    assert await require_csrf(visit({HEADER: VALUE}, method="POST"), receive, VALUE) is receive


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, f"{FIELD}={VALUE}"),  # not sent as a form
        (FORM, "a=1"),
        (FORM, f"{FIELD}={VALUE}x"),
        (FORM, f"{FIELD}={VALUE}&{FIELD}="),  # the last one counts
        ({HEADER: "wrong", **FORM}, f"{FIELD}={VALUE}"),
    ],
)
async def test_a_request_without_the_right_value_is_refused(headers: dict[str, str], body: str) -> None:
    with pytest.raises(Refused) as refused:
        await require_csrf(visit(headers, method="POST"), receiving(body.encode()), VALUE)
    assert refused.value.status == 403


async def test_a_client_that_disconnects_has_sent_nothing() -> None:
    assert await read_body(receiving()) == b""


def test_a_form_that_cannot_be_read_is_refused() -> None:
    assert form_fields(b"a=1&a=2&b=") == {"a": "2", "b": ""}
    for body in (b"\xff=1", b"&".join(b"f%d=1" % number for number in range(1_001))):
        with pytest.raises(Refused, match="cannot be read"):
            form_fields(body)
