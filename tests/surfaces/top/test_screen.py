"""`perdure top`: what the screen shows at 80 and 140 columns, and what its keys do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from tests.support.builders.jobs import state_of
from tests.surfaces.conftest import run_cli
from tests.surfaces.top.conftest import NEVER, asked, drawn, settled, shown

from perdure.domain.jobs.states import JobState
from perdure.errors import StoreUnavailable
from perdure.operate.commands.holds import Holds
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.top.figures import sparkline
from perdure.surfaces.top.screen import Top


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_screen_says_what_needs_a_person_and_fits_its_width(busy: Store, size: tuple[int, int]) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = shown(app)
        assert "need a person" in screen
        assert "2 charge_card died" in screen
        assert "reports no worker" in screen
        assert "● live" in screen
        assert "running 0 of 4" in screen
        assert max(cell_len(line) for line in screen.split("\n")) <= size[0]
        assert ("trend" in screen) is (size[0] == 140)


async def test_a_narrow_screen_cuts_the_address_and_the_error_first(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:////srv/shop/databases/orders-of-the-shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await settled(pilot)
        screen = shown(app)
        assert "…" in screen.split("\n")[0]
        assert "orders-of-the-shop.db  last 1h" in screen, "the end of an address names the database"
        assert "last seen" in screen
        assert "q Quit" in screen


def test_a_trend_covers_all_values() -> None:
    hour = [*[6] * 30, *[0] * 30]
    assert sparkline(hour, 12) == "██████▁▁▁▁▁▁"
    assert [len(sparkline([1] * number, 12)) for number in (0, 1, 11, 12, 13, 59)] == [0, 1, 11, 12, 12, 12]


async def test_keys_show_the_other_lists_and_explain_a_row(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
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
        await settled(pilot)
        await pilot.press("p")
        await asked(pilot)
        assert "Pause queue payments?" in shown(app)
        await pilot.press("n")
        await settled(pilot)
        assert await desk.holds.pauses() == []
        await pilot.press("p")
        await asked(pilot)
        await pilot.press("y")
        await settled(pilot)
        assert [pause.queue for pause in await desk.holds.pauses()] == ["payments"]
        assert "payments paused" in shown(app)
        await pilot.press("p")
        await asked(pilot)
        await pilot.press("y")
        await settled(pilot)
        assert await desk.holds.pauses() == []


async def test_a_probe_requeues_one_and_a_requeue_the_group(busy: Store) -> None:
    desk = Desk(busy, "ada")
    [group] = (await desk.failure_groups()).groups
    app = Top(desk, "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.press("3", "o")
        await asked(pilot)
        await pilot.press("y")
        await settled(pilot)
        assert group.newest is not None
        assert await state_of(busy, group.newest) is JobState.READY
        await pilot.press("r")
        await asked(pilot)
        assert "Requeue 1 charge_card job?" in shown(app)
        await pilot.press("y")
        await settled(pilot)
        [bulk] = (await desk.bulks()).bulks
        assert (bulk.action, bulk.jobs) == ("requeue", 1)


async def test_a_worker_is_told_to_stop_claiming(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.press("2", "u")
        await asked(pilot)
        await pilot.press("y")
        await settled(pilot)
        assert "quiet" in shown(app)
        await pilot.press("r")
        await drawn(pilot)
        assert "Choose a group of dead letters first" in shown(app)


async def test_a_database_that_goes_away_is_reported_and_the_last_look_stays(
    busy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)

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


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "n", "enter", "p"])
async def test_an_empty_database_has_nothing_to_show(store: Store, key: str) -> None:
    app = Top(Desk(store, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press(key)
        await drawn(pilot)
        assert "All is well" in shown(app) or "Nothing needs a person." in shown(app)
        assert "● live" in shown(app)


async def test_a_database_that_was_never_there_is_reported_and_recovers(
    busy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreUnavailable("cannot connect to 10.0.0.7")

    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    with monkeypatch.context() as patched:
        patched.setattr(busy, "workers", away)
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            assert "shop.db" in shown(app)
            assert "○ away" in shown(app)
            assert "No answer from the database" in shown(app)
            patched.undo()
            await app.refresh_look()
            await drawn(pilot)
            assert "● live" in shown(app)


async def test_keys_are_heard_while_the_database_does_not_answer(busy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    answer = asyncio.Event()
    workers = busy.workers

    async def slow() -> object:
        await answer.wait()
        return await workers()

    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        monkeypatch.setattr(busy, "workers", slow)
        app._tick()
        await drawn(pilot)
        app._tick()
        await pilot.press("2")
        await drawn(pilot)
        assert "waiting for an answer" in shown(app)
        assert "pay-1" in shown(app)
        answer.set()
        await settled(pilot)
        assert "● live" in shown(app)


async def test_a_command_under_way_is_not_cut_off_by_the_next(busy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(busy, "ada")
    app = Top(desk, "sqlite:///shop.db", refresh_seconds=NEVER)
    answer = asyncio.Event()
    pause = Holds.pause

    async def slow(holds: Holds, **given: Any) -> object:
        await answer.wait()
        return await pause(holds, **given)

    monkeypatch.setattr(Holds, "pause", slow)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        await pilot.press("p")
        await asked(pilot)
        await pilot.press("y")
        await drawn(pilot)
        await pilot.press("p")
        await drawn(pilot)
        assert "The last command is still under way." in shown(app)
        answer.set()
        await settled(pilot)
        assert [each.queue for each in await desk.holds.pauses()] == ["payments"]


async def test_a_terminal_that_is_resized_gets_the_columns_that_fit(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(pilot)
        assert "trend" in shown(app)
        await pilot.resize_terminal(80, 24)
        await drawn(pilot)
        assert "trend" not in shown(app)
        await pilot.resize_terminal(140, 40)
        await drawn(pilot)
        assert "trend" in shown(app)


async def test_it_is_drawn_in_the_colours_of_the_terminal(busy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a light terminal it is light: it paints no background of its own."""
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        styles = [segment.style for strip in app.screen._compositor.render_strips() for segment in strip]
    painted = {style.bgcolor.name for style in styles if style is not None and style.bgcolor is not None}
    assert painted <= {"default"}


async def test_ctrl_c_leaves_it_also_from_a_question(busy: Store) -> None:
    app = Top(Desk(busy, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("p")
        await asked(pilot)
        await pilot.press("ctrl+c")
        await pilot.pause()
    assert app._exit


def test_without_a_terminal_it_says_what_to_use_instead(tmp_path: Path) -> None:
    answer = run_cli("top", env={"PERDURE_URL": f"sqlite:///{tmp_path / 'none.db'}"})
    assert answer.code == Exit.USAGE
    assert "perdure stats --json" in answer.err
