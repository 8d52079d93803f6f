"""What `perdure worker` changes about its own process, and nobody else does."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure import App
from perdure.worker.interpreter import set_up_for_work


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    sys.setswitchinterval(interval)


async def greet(name: str) -> None:
    del name


def greet_in_thread(name: str) -> None:
    del name


def test_a_worker_of_its_own_searches_rarely_and_hands_the_interpreter_over_soon() -> None:
    app = App("sqlite:///unused.db")
    app.job(greet)
    set_up_for_work(app.kinds)
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == 20_000
    assert sys.getswitchinterval() == pytest.approx(0.0005)


def test_where_handlers_run_in_threads_these_are_not_hurried() -> None:
    app, before = App("sqlite:///unused.db"), sys.getswitchinterval()
    app.job(greet)
    app.job(greet_in_thread)
    set_up_for_work(app.kinds)
    assert sys.getswitchinterval() == before


async def test_a_worker_in_somebody_elses_process_changes_nothing(tmp_path: Path) -> None:
    before = gc.get_threshold(), sys.getswitchinterval(), gc.get_freeze_count()
    async with App(f"sqlite:///{tmp_path}/jobs.db") as app:
        await app.worker()
    assert (gc.get_threshold(), sys.getswitchinterval(), gc.get_freeze_count()) == before
