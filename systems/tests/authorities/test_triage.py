"""What every answer of an authority means for its order (D3)."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from systems.tests.authorities.support import after_a_drain, order, view_of

from perdure.testing import Sandbox
from perdure_systems.authorities.orders import find_order
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import Reply, StandIns

ALL = list(Authority)
REJECTIONS = {
    Authority.DIGICERT: ["rejected", "denied", "failed"],
    Authority.SECTIGO: ["Rejected", "Revoked", "Expired", "Not Enrolled"],
    Authority.ENTRUST: ["REJECTED", "DENIED", "FAILED"],
    Authority.GLOBALSIGN: ["rejected", "denied", "failed"],
}
PENDINGS = {
    Authority.DIGICERT: ["pending", "processing"],
    Authority.SECTIGO: ["Applied", "Pending"],
    Authority.ENTRUST: ["PENDING", "PROCESSING", "AWAITING_APPROVAL"],
    Authority.GLOBALSIGN: ["pending", "processing"],
}


@pytest.mark.parametrize("authority", ALL)
async def test_d3_issued_is_done(authority: Authority, sqlite_box: Sandbox, standins: StandIns) -> None:
    done = await after_a_drain(sqlite_box, authority)
    assert (done.status, done.polls) == ("issued", 1)


@pytest.mark.parametrize("authority", ALL)
async def test_d3_pending_words_are_still_pending(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    standins.of(authority).behaviour.approve_after = None
    for word in PENDINGS[authority]:
        standins.of(authority).behaviour.pending_word = word
        seen = await after_a_drain(sqlite_box, authority)
        view = await view_of(seen.id)
        assert (view.state, view.failures) == ("waiting", 0), word
        assert (view.reason or "").endswith(f"is {word!r} at {authority.title}")


@pytest.mark.parametrize("authority", ALL)
async def test_d3_refusals_are_done_and_failed(authority: Authority, sqlite_box: Sandbox, standins: StandIns) -> None:
    """One poll, no retry: it is the authority's last word. What it was is kept."""
    for word in REJECTIONS[authority]:
        standins.of(authority).behaviour.rejected_word = word
        seen = await after_a_drain(sqlite_box, authority)
        assert (seen.status, seen.polls) == ("failed", 1), word
        assert (seen.error or "").startswith(f"Rejected: {authority.title} will not issue")
        assert repr(word) in (seen.error or "")


@pytest.mark.parametrize("authority", ALL)
async def test_d3_a_body_that_cannot_be_read_is_an_error(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    nested = b'{"status": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    shapes = (b"<html>oops", b'{"state": "issued"}', b'{"status": 7}', b"[]", b"", nested)
    for body in (*shapes, b"\xff\xfe", b'{"status": "\xff"}'):
        standins.of(authority).behaviour.break_next(body)
        seen = await after_a_drain(sqlite_box, authority)
        assert (seen.status, seen.polls) == ("failed", 1), body[:50]
        assert (seen.error or "").startswith("Unreadable: "), body[:50]


@pytest.mark.parametrize("authority", ALL)
async def test_d3_a_4xx_other_than_429_is_an_error_at_once(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    for status in (400, 401, 403, 404, 408, 409, 410, 422):
        standins.of(authority).behaviour.always = Reply(status, b'{"error":"no"}')
        seen = await after_a_drain(sqlite_box, authority)
        assert (seen.status, seen.polls) == ("failed", 1), status
        assert f"answered {status} " in (seen.error or "")


@pytest.mark.parametrize("authority", ALL)
async def test_d3_429_and_5xx_are_still_pending_and_cost_no_attempt(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    for status in (429, 500, 502, 503, 504):
        standins.of(authority).behaviour.replies.append(Reply(status))
        seen = await after_a_drain(sqlite_box, authority)
        view = await view_of(seen.id)
        assert (view.state, view.failures, seen.polls) == ("waiting", 0, 1), status
        assert f"answered {status} " in (view.reason or "")
        await sqlite_box.drain(travel=True)
        assert (await find_order(seen.id)).status == "issued"


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        yield listening.getsockname()[1]


@pytest.mark.parametrize("authority", ALL)
async def test_d3_network_and_tls_errors_are_still_pending(
    authority: Authority,
    sqlite_box: Sandbox,
    standins: StandIns,
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    standins.of(authority).behaviour.approve_after = 2
    order_id = await order(authority)
    await sqlite_box.drain()
    prefix = f"CERTCTL_{authority.name}_"
    address = f"{prefix}{'API_URL' if standins.of(authority).is_mutual else 'BASE_URL'}"
    monkeypatch.setenv(address, f"https://127.0.0.1:{closed_port}")
    await sqlite_box.drain(travel="6s")
    gone = await find_order(order_id)
    assert (gone.status, gone.polls, "ConnectError" in (gone.last_answer or "")) == ("parked", 2, True)
    monkeypatch.setenv(address, standins.environment[address])
    roots = f"{prefix}SERVER_CA_PATH"
    monkeypatch.setenv(roots, standins.environment[f"{prefix}ROOTS_PATH"])
    await sqlite_box.drain(travel="20s")
    distrusted = await find_order(order_id)
    assert (distrusted.status, distrusted.polls) == ("parked", 3)
    assert "CERTIFICATE_VERIFY_FAILED" in (distrusted.last_answer or "")
    assert (await view_of(order_id)).failures == 0
    monkeypatch.setenv(roots, standins.environment[roots])
    await sqlite_box.drain(travel=True)
    assert (await find_order(order_id)).status == "issued"


@pytest.mark.parametrize("authority", ALL)
@pytest.mark.parametrize("status", [429, 503])
async def test_d3_retry_after_is_honoured(
    authority: Authority, status: int, sqlite_box: Sandbox, standins: StandIns
) -> None:
    """Longer than the table: taken. Shorter: the table holds, so that no authority can speed up our polls (D11)."""
    standin = standins.of(authority)
    standin.behaviour.fail_next(1, status, **{"Retry-After": "90"})
    standin.behaviour.fail_next(1, status, **{"Retry-After": "1"})
    await order(authority)
    await sqlite_box.drain(travel=True)
    first, second, third = standin.asked
    assert second - first == 90
    assert 12 <= third - second <= 18


async def test_d3_a_busy_authority_is_asked_again_for_the_order_itself(sqlite_box: Sandbox, standins: StandIns) -> None:
    """429 and 5xx to a new order: it was not taken, and is placed later, once."""
    standins.digicert.behaviour.place = Reply(503)
    order_id = await order(Authority.DIGICERT)
    await sqlite_box.drain(travel="1m")
    waiting = await find_order(order_id)
    assert (waiting.status, waiting.authority_order) == ("parked", None)
    assert "answered 503 Service Unavailable to POST /order/certificate/ssl_basic" in (waiting.last_answer or "")
    standins.digicert.behaviour.place = None
    await sqlite_box.drain(travel=True)
    assert ((await find_order(order_id)).status, len(standins.digicert.orders)) == ("issued", 1)


async def test_an_order_whose_answer_was_lost_is_not_placed_twice(
    sqlite_box: Sandbox, standins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate costs money: a person looks first."""
    standins.digicert.behaviour.place = Reply(504)
    order_id = await order(Authority.DIGICERT)
    await sqlite_box.drain(travel=True)
    failed = await find_order(order_id)
    assert (failed.status, len(standins.digicert.seen)) == ("failed", 1)
    assert "may have taken the order" in (failed.error or "")
    assert "Look for it at DigiCert first" in (failed.error or "")
