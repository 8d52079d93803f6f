"""What was enqueued can be asked for by job, arguments and options, and a miss explains itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import pytest

from perdure import App, ArgumentError, Job, NotFoundError, Unique
from perdure.testing import Sandbox

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def send(app: App) -> Job[..., None]:
    @app.job
    async def send(channel: str, text: str, places: tuple[int, int] = (1, 2), ratio: float = 0.5) -> None: ...

    return send


@pytest.fixture
async def box(app: App, send: Job[..., None]) -> AsyncIterator[Sandbox]:
    async with Sandbox(app, start=START) as box:
        await send.enqueue("#ops", "disk full")
        await send.using(priority=3, tags=["a"]).enqueue("#ops", "still full")
        await send.using(queue="mail", run_at=START + timedelta(hours=1)).enqueue("#dev", "hello")
        yield box


def test_everything_is_listed_in_order(box: Sandbox) -> None:
    assert [one.arguments["text"] for one in box.enqueued()] == ["disk full", "still full", "hello"]
    assert [one.delay for one in box.enqueued()] == [timedelta(0), timedelta(0), timedelta(hours=1)]
    assert [one.queue for one in box.enqueued()] == ["default", "default", "mail"]


def test_arguments_match_by_name_place_default_and_likeness(box: Sandbox, send: Job[..., None]) -> None:
    assert len(box.enqueued(send, "#ops")) == 2
    assert len(box.enqueued(send, "#ops", text="disk full")) == 1
    assert len(box.enqueued("send", channel="#dev")) == 1
    assert len(box.enqueued(send, places=(1, 2))) == 3
    assert len(box.enqueued(send, ANY, text=ANY)) == 3
    assert len(box.enqueued(send, ratio=pytest.approx(0.5001, abs=0.001))) == 3


async def test_arguments_without_a_type_match_by_what_is_stored(app: App, box: Sandbox) -> None:
    @app.job
    async def place(where, when):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - that is the point
        ...

    await place.enqueue((3, 4), START)
    assert len(box.enqueued(place, (3, 4), when=START)) == 1
    assert len(box.enqueued(place, [3, 4], when="2030-01-01T00:00:00Z")) == 1
    assert box.enqueued(place, (4, 3)) == []


async def test_options_match_as_they_are_written_when_enqueueing(box: Sandbox, send: Job[..., None]) -> None:
    await send.using(delay="10m", meta={"by": "ann", "at": [1]}).enqueue("#later", "x")

    assert len(box.enqueued(send.using(delay="10m"))) == 1
    assert len(box.enqueued(send.using(run_at=START + timedelta(minutes=10)))) == 1
    assert len(box.enqueued(send.using(delay="1h", queue="mail"))) == 1
    assert len(box.enqueued(send.using(delay=0))) == 2
    assert len(box.enqueued(send.using(priority=3, tags=["a"]))) == 1
    assert len(box.enqueued(send.using(meta={"at": [1]}))) == 1
    assert box.enqueued(send.using(tags=["c"])) == []
    assert box.enqueued(send.using(meta={"by": "bob"})) == []
    assert box.enqueued(send.using(id="01234567-89ab-7def-8123-456789abcdef")) == []
    with pytest.raises(ArgumentError, match="unique"):
        box.enqueued(send.using(unique=Unique()))


def test_the_assertions_hold_and_give_what_they_found(box: Sandbox, send: Job[..., None]) -> None:
    assert len(box.assert_enqueued(send, "#ops")) == 2
    assert box.assert_enqueued_once(send, "#dev").queue == "mail"
    assert len(box.assert_enqueued_times(2, send, "#ops")) == 2
    box.assert_not_enqueued(send, "#none")


def test_a_miss_shows_what_was_enqueued_instead_and_what_differs(box: Sandbox, send: Job[..., None]) -> None:
    with pytest.raises(AssertionError) as missed:
        box.assert_enqueued(send.using(priority=3), "#ops", text="disk full")
    assert str(missed.value).splitlines() == [
        "send.using(priority=3)(channel='#ops', text='disk full') should have been enqueued, and was not",
        "send was enqueued as:",
        "  send(channel='#ops', text='disk full')  [queue='default']  <- priority=5",
        "  send(channel='#ops', text='still full')  [queue='default', priority=3, tags=['a']]  <- text='still full'",
        "  send(channel='#dev', text='hello')  [queue='mail', due in 1h]  <- channel='#dev', text='hello', priority=5",
    ]


async def test_other_kinds_are_shown_too(app: App, box: Sandbox) -> None:
    @app.job
    async def audit(url: str) -> None: ...

    with pytest.raises(AssertionError, match=r"audit was never enqueued, only:\n  send\(channel='#ops'"):
        box.assert_enqueued(audit)
    async with Sandbox(App("sqlite:////no/such/folder/x.db")) as empty:
        with pytest.raises(
            AssertionError, match=r"audit\(url='a'\) should have been enqueued, and was not\nnothing was"
        ):
            empty.assert_enqueued(audit, "a")


def test_too_many_are_reported_as_well(box: Sandbox, send: Job[..., None]) -> None:
    with pytest.raises(AssertionError, match=r"send\(\) should have been enqueued once, and was 3 times"):
        box.assert_enqueued_once(send)
    with pytest.raises(AssertionError, match=r"should have been enqueued 2 times, and was once"):
        box.assert_enqueued_times(2, send, "#dev")
    with pytest.raises(AssertionError, match=r"should not have been enqueued, and was once"):
        box.assert_not_enqueued(send, "#dev")


def test_what_can_never_match_is_refused(box: Sandbox, send: Job[..., None]) -> None:
    with pytest.raises(ArgumentError, match=r"argument chanel is not one of send\(channel, "):
        box.assert_not_enqueued(send, chanel="#ops")
    with pytest.raises(ArgumentError, match="takes 4, expected are 5"):
        box.assert_not_enqueued(send, 1, 2, 3, 4, 5)
    with pytest.raises(ArgumentError, match="twice"):
        box.assert_not_enqueued(send, "#ops", channel="#ops")
    with pytest.raises(NotFoundError, match="sned"):
        box.assert_not_enqueued("sned")


async def test_duplicates_are_not_counted_and_replaced_jobs_show_their_new_arguments(app: App, box: Sandbox) -> None:
    @app.job(unique=Unique(by="url", on_conflict="replace"))
    async def audit(url: str, deep: bool = False) -> None: ...

    await audit.enqueue("a")
    await audit.enqueue("a", deep=True)
    assert box.assert_enqueued_once(audit).arguments == {"url": "a", "deep": True}


async def test_many_jobs_are_cut_to_a_readable_number(app: App, box: Sandbox) -> None:
    @app.job
    async def work(n: int) -> None: ...

    await app.enqueue_many(work.call(n) for n in range(50))
    with pytest.raises(AssertionError) as missed:
        box.assert_enqueued(work, n=-1)
    assert len(str(missed.value).splitlines()) < 30
    assert "… and 30 more" in str(missed.value)
