"""When an authority is asked, for how long, and what happens in between."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from systems.tests.authorities.support import D4, order, view_of
from systems.tests.engines import on_sqlite

from perdure import Jitter
from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.csr import read_request
from perdure_systems.authorities.orders import find_order
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import Reply, StandIns, new_request

ALL = list(Authority)
NOMINAL = [5, 15, 45, 120, 300]


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """No jitter."""
    monkeypatch.setattr(jobs, "JITTER", Jitter.none())


@pytest.mark.parametrize("authority", ALL)
@on_sqlite
async def test_d1_issuing_returns_an_order_id_at_once(authority: Authority, box: Sandbox, standins: StandIns) -> None:
    """Ours, before the authority was asked at all; the authority's own with the first answer, long before it issues."""
    standins.of(authority).behaviour.approve_after = None
    handle = await jobs.issue(authority, read_request(new_request("shop.example")))
    view = await handle.view()
    assert (view.ref or "").startswith("ord-")
    assert standins.of(authority).seen == []
    begun = box.now
    await box.drain()
    seen = await find_order(view.ref or "")
    assert (seen.authority_order, box.now) == (next(iter(standins.of(authority).orders)), begun)


@pytest.mark.parametrize(
    ("authority", "value", "seconds"),
    [
        (Authority.DIGICERT, None, 600),
        (Authority.SECTIGO, "0", 600),
        (Authority.ENTRUST, "86400", 86_400),
        (Authority.GLOBALSIGN, "60", 60),
    ],
)
@pytest.mark.usefixtures("steady")
async def test_d1_a_round_of_polls_takes_what_the_variable_of_its_authority_says(
    authority: Authority,
    value: str | None,
    seconds: int,
    sqlite_box: Sandbox,
    standins: StandIns,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if value is not None:
        monkeypatch.setenv(f"CERTCTL_{authority.name}_POLL_MAX_WAIT_SECONDS", value)
    standins.of(authority).behaviour.approve_after = None
    order_id = await order(authority)
    begun = sqlite_box.now
    await sqlite_box.drain()
    assert (await find_order(order_id)).deadline == begun + timedelta(seconds=seconds)
    await sqlite_box.drain(travel=min(seconds, 1_200))
    asked = standins.of(authority).asked
    if seconds == 86_400:
        assert asked == [0, 5, 20, 65, 185, 485, 785, 1_085]
        assert (await find_order(order_id)).round == 1
    else:
        assert asked[-1] == seconds
        assert (await find_order(order_id)).round == 2


async def test_d2_waits_are_those_of_the_table_each_with_twenty_percent_of_jitter(
    sqlite_box: Sandbox, standins: StandIns
) -> None:
    """The original's jitter was 0: all its instances asked at the same moments."""
    for authority in ALL:
        standins.of(authority).behaviour.approve_after = None
        for number in range(2):
            await order(authority, f"{number}.example")
    await sqlite_box.drain(travel="595s")
    waits: list[list[float]] = []
    for authority in ALL:
        asked: dict[str, list[float]] = {}
        for seen in standins.of(authority).seen:
            if seen.is_status:
                asked.setdefault(seen.path, []).append(seen.at)
        waits += [[after - before for before, after in pairwise(times)][:5] for times in asked.values()]
    assert len(waits) == 8
    shares = [wait / nominal for one in waits for wait, nominal in zip(one, NOMINAL, strict=True)]
    assert all(0.8 <= share <= 1.2 for share in shares)
    assert min(shares) < 0.85
    assert max(shares) > 1.15
    assert len(set(shares)) == len(shares)


@pytest.mark.usefixtures("steady")
async def test_d4_seven_polls_the_last_at_the_deadline_then_still_pending_and_a_later_round(
    box: Sandbox, standins: StandIns
) -> None:
    standins.entrust.behaviour.approve_after = None
    order_id = await order(Authority.ENTRUST)
    await box.drain(travel="10m")
    assert standins.entrust.asked == D4
    view = await view_of(order_id)
    assert (view.state, view.word, view.failures, view.last_error) == ("waiting", "parked", 0, None)
    assert (view.reason or "").startswith("still pending: collect, poll 7: ")
    seen = await find_order(order_id)
    assert (seen.polls, seen.round) == (7, 2)
    await box.drain(travel="15m")
    assert standins.entrust.asked == [*D4, *(900 + second for second in D4)]
    standins.entrust.approve(seen.authority_order or "")
    await box.drain(travel=True)
    done = await find_order(order_id)
    assert (done.status, done.polls) == ("issued", 15)


@pytest.mark.usefixtures("steady")
@on_sqlite
async def test_d4_the_last_error_is_kept_in_the_message(box: Sandbox, standins: StandIns) -> None:
    """Each poll fails in another way; after the round the message tells of the last one, and none before it."""
    statuses = [500, 502, 503, 504, 429, 500, 503]
    for number, status in enumerate(statuses, 1):
        standins.sectigo.behaviour.replies.append(Reply(status, f"trouble {number}".encode()))
    order_id = await order(Authority.SECTIGO)
    await box.drain(travel="10m")
    view = await view_of(order_id)
    message = "Sectigo answered 503 Service Unavailable to GET /ssl/v1/1001: trouble 7"
    assert (view.reason or "").startswith("still pending: collect, poll 7: ")
    assert (view.reason or "").endswith(message)
    assert (await find_order(order_id)).last_answer == f"Refused: {message}"


@pytest.mark.usefixtures("steady")
@on_sqlite
async def test_d4_cancellation_is_honoured_inside_every_wait(box: Sandbox, standins: StandIns) -> None:
    """One order for each wait of a round, and one for the rest after it; each is cancelled within its wait."""
    standins.globalsign.behaviour.approve_after = None
    desk = await jobs.app.desk("operator")
    orders = [await order(Authority.GLOBALSIGN, f"{number}.example") for number in range(len(D4))]
    for order_id, polled in zip(orders, D4, strict=True):
        await box.drain(travel=polled + 1 - max(standins.globalsign.clock(), 0))
        assert (await view_of(order_id)).state == "waiting"
        await desk.cancel(order_id, why="not needed any more")
        assert (await find_order(order_id)).status == "cancelled"
    polls = {order_id: (await find_order(order_id)).polls for order_id in orders}
    assert list(polls.values()) == [1, 2, 3, 4, 5, 6, 7]
    asked = len(standins.globalsign.asked)
    await box.drain(travel="2h")
    assert len(standins.globalsign.asked) == asked
    assert (await view_of(orders[0])).cancelled_by == "operator"


@pytest.mark.usefixtures("steady")
async def test_d5_no_attempt_runs_while_an_order_waits_and_its_count_is_kept(
    standins: StandIns, engine_url: str, tidy: None
) -> None:
    """Every poll is made by another sandbox, which knows nothing but the database."""
    standins.digicert.behaviour.approve_after = len(D4)
    start, order_id = None, ""
    for number, second in enumerate(D4, 1):
        at = None if start is None else start + timedelta(seconds=second)
        async with Sandbox(jobs.app, url=engine_url, start=at) as box:
            if start is None:
                start, order_id = box.now, await order(Authority.DIGICERT)
            drained = await box.drain()
            assert (drained.attempts, drained.left) == (1, 0 if second == 600 else 1)
            assert (await find_order(order_id)).polls == number
    async with Sandbox(jobs.app, url=engine_url):
        assert (await find_order(order_id)).status == "issued"
    assert [seen.method for seen in standins.digicert.seen].count("POST") == 1


@pytest.mark.parametrize("authority", ALL)
@pytest.mark.parametrize("retry_after", [None, "1"])
async def test_d11_an_authority_that_answers_429_for_ever_gets_seven_or_eight_requests_in_ten_minutes(
    authority: Authority, retry_after: str | None, sqlite_box: Sandbox, standins: StandIns
) -> None:
    """Seven polls and the order itself; not 600, even if the authority asks for haste."""
    standins.of(authority).behaviour.rate_limit_for_ever(retry_after)
    await order(authority)
    await sqlite_box.drain(travel="10m")
    assert 7 <= len(standins.of(authority).asked) <= 8
    assert 7 <= len(standins.of(authority).seen) <= 8


async def test_d11_an_authority_that_answers_429_to_the_order_itself_is_asked_no_more_often(
    sqlite_box: Sandbox, standins: StandIns
) -> None:
    standins.digicert.behaviour.place = Reply(429, b"", {"Retry-After": "1"})
    await order(Authority.DIGICERT)
    await sqlite_box.drain(travel="10m")
    assert 7 <= len(standins.digicert.seen) <= 8


@pytest.mark.usefixtures("steady")
@on_sqlite
async def test_poll_now_asks_at_once_and_the_round_goes_on(box: Sandbox, standins: StandIns) -> None:
    standins.entrust.behaviour.approve_after = None
    order_id = await order(Authority.ENTRUST)
    await box.drain(travel="70s")
    await (await jobs.app.desk("operator")).run_now(order_id)
    await box.drain()
    assert standins.entrust.asked == [0, 5, 20, 65, 70]
