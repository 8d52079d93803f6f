"""The limit on the size of a body."""

from __future__ import annotations

import pytest
from tests.surfaces.access.requests.test_origins import visit

from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.login.csrf import Message
from perdure.surfaces.access.requests.bodies import limited


async def ten_bytes() -> Message:
    return {"type": "http.request", "body": b"0123456789", "more_body": True}


@pytest.mark.parametrize("length", ["101", "99999999999999999999"])
def test_a_length_beyond_the_limit_is_refused_before_anything_is_read(length: str) -> None:
    with pytest.raises(Refused, match="at most 100 bytes") as refused:
        limited(visit({"content-length": length}), ten_bytes, 100)
    assert (refused.value.status, refused.value.headers) == (413, {"Connection": "close"})


@pytest.mark.parametrize("length", ["-1", "ten", "1e3", "²"])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    with pytest.raises(Refused, match="Content-Length must be a number") as refused:
        limited(visit({"content-length": length}), ten_bytes, 100)
    assert refused.value.status == 400


async def test_a_body_without_a_true_length_is_refused_once_it_passes_the_limit() -> None:
    receive = limited(visit({"content-length": "10"}), ten_bytes, 25)
    assert [len((await receive())["body"]) for _ in range(2)] == [10, 10]
    with pytest.raises(Refused, match="at most 25 bytes"):
        await receive()


async def test_a_body_of_exactly_the_limit_passes() -> None:
    receive = limited(visit({"content-length": "20"}), ten_bytes, 20)
    assert [len((await receive())["body"]) for _ in range(2)] == [10, 10]
