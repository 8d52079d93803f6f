"""`perdure top`: what the screen shows at 80 and 140 columns, and what its keys do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.builders.jobs import apply, claim_some, employ, enqueue, state_of
from tests.surfaces.conftest import run_cli
from textual.pilot import Pilot

from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import died
from perdure.errors import StoreUnavailable
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.top.figures import sparkline
from perdure.surfaces.top.screen import Top

NEVER = 3_600.0  # seconds: tests refresh by hand


def shown(app: Top) -> str:
    """The screen as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def settled(pilot: Pilot[None]) -> None:
    """Let workers and messages of the screen come to rest."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.fixture
async def busy(store: Store) -> Store:
    """A queue with a worker, one without, and two dead letters of one cause."""
    worker = await employ(store, name="pay-1", queues=("payments",), concurrency=4)
    for number in range(2):
        await enqueue(store, kind="charge_card", queue="payments", args=f'{{"order":{number}}}')
    for number, claim in enumerate(await claim_some(store, worker, 2, "payments")):
        await apply(store, died(claim, Reason.EXHAUSTED, Failure("TimeoutError", f"gateway {number} gave up\x1b[31m")))
    await enqueue(store, kind="report", queue="reports")
    return store


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_screen_says_what_needs_a_person_and_fits_its_width(busy: Store, size: tuple[int, int]) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        screen = shown(app)
        assert "need a person" in screen
        assert "2 charge_card died" in screen
        assert "reports no worker" in screen
        assert "● live" in screen
        assert "running 0 of 4" in screen
        assert max(len(line) for line in screen.split("\n")) <= size[0]
        assert ("trend" in screen) is (size[0] == 140)


async def test_a_narrow_screen_cuts_the_address_and_the_error_first(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:////srv/shop/databases/orders-of-the-shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await pilot.pause()
        screen = shown(app)
        assert "…  last 1h" in screen
        assert "last seen" in screen
        assert "q Quit" in screen


def test_a_trend_covers_all_values() -> None:
    hour = [*[6] * 30, *[0] * 30]
    assert sparkline(hour, 12) == "██████▁▁▁▁▁▁"
    assert [len(sparkline([1] * number, 12)) for number in (0, 1, 11, 12, 13, 59)] == [0, 1, 11, 12, 12, 12]


async def test_keys_show_the_other_lists_and_explain_a_row(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("2")
        await pilot.pause()
        assert "pay-1" in shown(app)
        await pilot.press("3", "enter")
        await pilot.pause()
        assert "perdure dead requeue --group" in shown(app)
        assert "\x1b" not in shown(app)
        await pilot.press("escape", "question_mark")
        await pilot.pause()
        assert "requeue a whole group, after a dry run" in shown(app)


async def test_a_queue_is_paused_and_resumed_after_a_question(busy: Store) -> None:
    desk = Desk(busy, "ada")
    app = Top(desk, "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert "Pause queue payments?" in shown(app)
        await pilot.press("n")
        await settled(pilot)
        assert await desk.holds.pauses() == []
        await pilot.press("p")
        await pilot.pause()
        await pilot.press("y")
        await settled(pilot)
        assert [pause.queue for pause in await desk.holds.pauses()] == ["payments"]
        assert "payments paused" in shown(app)
        await pilot.press("p")
        await pilot.pause()
        await pilot.press("y")
        await settled(pilot)
        assert await desk.holds.pauses() == []


async def test_a_probe_requeues_one_and_a_requeue_the_group(busy: Store) -> None:
    desk = Desk(busy, "ada")
    [group] = (await desk.failure_groups()).groups
    app = Top(desk, "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("3", "o")
        await pilot.pause()
        await pilot.press("y")
        await settled(pilot)
        assert group.newest is not None
        assert await state_of(busy, group.newest) is JobState.READY
        await pilot.press("r")
        await pilot.pause()
        assert "Requeue 1 charge_card job?" in shown(app)
        await pilot.press("y")
        await settled(pilot)
        [bulk] = await desk.bulks()
        assert (bulk.action, bulk.jobs) == ("requeue", 1)


async def test_a_worker_is_told_to_stop_claiming(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("2", "u")
        await pilot.pause()
        await pilot.press("y")
        await settled(pilot)
        assert "quiet" in shown(app)
        await pilot.press("r")
        await pilot.pause()
        assert "Choose a group of dead letters first" in shown(app)


async def test_a_database_that_goes_away_is_told_and_the_last_look_stays(
    busy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()

        async def away() -> None:
            raise StoreUnavailable("cannot connect to 10.0.0.7")

        with monkeypatch.context() as patched:
            patched.setattr(busy, "workers", away)
            await app.refresh_look()
            await pilot.pause()
            assert "No answer from the database" in shown(app)
            assert "away since" in shown(app)
            assert "payments" in shown(app)
        await app.refresh_look()
        await pilot.pause()
        assert "● live" in shown(app)
        assert "No answer" not in shown(app)


def test_without_a_terminal_it_says_what_to_use_instead(tmp_path: Path) -> None:
    answer = run_cli("top", env={"PERDURE_URL": f"sqlite:///{tmp_path / 'none.db'}"})
    assert answer.code == Exit.USAGE
    assert "perdure stats --json" in answer.err
