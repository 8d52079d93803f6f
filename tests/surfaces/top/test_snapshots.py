"""Snapshots of `perdure top`: each list and dialog, as text, at 80 and 140 columns.

They stand in the folder `snapshots`. After a change that is meant, look at what they become and keep it:
`PERDURE_SNAPSHOTS=write python -m pytest tests/surfaces/top`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.support.builders.jobs import HOSTILE, MINUTE, SECOND, apply, claim_some, employ, enqueue
from tests.surfaces.top.conftest import NEVER, drawn, settled, shown

from perdure.clock import ManualClock
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import died
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.top.screen import Top

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZES = {"80": (80, 24), "140": (140, 30)}
SCREENS = {
    "queues": (),
    "workers": ("2",),
    "dead": ("3",),
    "kinds": ("4",),
    "needs": ("n",),
    "keys": ("question_mark",),
    "group": ("3", "enter"),
    "pause": ("p",),
}


@pytest.fixture
async def eventful(busy: Store, clock: ManualClock) -> Store:
    """The same, a minute and a half later: one worker is lost, another one came; with a pause and a breaker."""
    desk = Desk(busy, "ada")
    clock.move(by=SECOND)
    await employ(busy, name="mail-1", queues=("mail",), concurrency=10)
    for _ in range(3):
        await enqueue(busy, kind="send_mail", queue="mail")
    clock.move(by=1.5 * MINUTE)
    await employ(busy, name="pay-2", queues=("payments", "default"), concurrency=8)
    await desk.holds.pause(queue="mail", why="the server is moved")
    await desk.holds.open_breaker("gateway", why="their maintenance")
    return busy


def as_kept(screen: str) -> str:
    """Without ids and fingerprints, which are others each time."""
    without = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}", "00000000-0000-7000-8000-000000000000", screen)
    return re.sub(r"(--group )[0-9a-f]{12}", r"\g<1>0123456789ab", without).rstrip() + "\n"


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_is_as_it_was(name: str, width: str, eventful: Store) -> None:
    app = Top(Desk(eventful, "ada"), "postgresql://operator@db.example.com/shop", refresh_seconds=NEVER)
    async with app.run_test(size=SIZES[width]) as pilot:
        await settled(pilot)
        await pilot.press(*SCREENS[name])
        await drawn(pilot)
        screen = as_kept(shown(app))
    file = SNAPSHOTS / f"{name}-{width}.txt"
    if os.environ.get("PERDURE_SNAPSHOTS") == "write":
        file.write_text(screen, encoding="utf-8")
    assert screen == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 80, 140])
async def test_hostile_and_very_long_names_neither_move_the_columns_nor_the_cursor(width: int, store: Store) -> None:
    names = [name for name in HOSTILE if name.isprintable() and name.strip()] + ["k" * 100, "漢字" * 30, "🦩" * 20]
    worker = await employ(store, name="w\x1b[31m" * 20, queues=tuple(names), concurrency=50)
    for name in names:
        await enqueue(store, kind=name, queue=name)
        for claim in await claim_some(store, worker, 1, name):
            await apply(store, died(claim, Reason.EXHAUSTED, Failure("E\x1b]0;owned\x07", f"line\n\u202e{name * 3}")))
    app = Top(Desk(store, "ada"), "sqlite:///shop.db", refresh_seconds=NEVER)
    async with app.run_test(size=(width, 40)) as pilot:
        await settled(pilot)
        for key in "1234":
            await pilot.press(key)
            await drawn(pilot)
            screen = shown(app)
            assert not {"\x1b", "\x07", "\u202e"} & set(screen)
            if width >= 80:
                head = next(
                    line for line in screen.split("\n") if line.startswith((" queue ", " worker ", " dead ", " kind "))
                )
                assert head.rstrip().endswith(("failed", "trend", "queues", "error")), "no column is pushed out"
