"""Stand-ins that run for the whole session, and a sandbox whose orders go to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import StandIns, serving
from perdure_systems.authorities.wire import WIRES


@pytest.fixture(scope="session")
def running_standins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIns]:
    with serving(tmp_path_factory.mktemp("standins")) as standins:
        yield standins


@pytest.fixture
def standins(running_standins: StandIns, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIns]:
    """The four stand-ins, well behaved and without orders; the environment leads to them."""
    for name, value in running_standins.environment.items():
        monkeypatch.setenv(name, value)
    for authority in Authority:
        running_standins.of(authority).reset()
    yield running_standins
    for authority in Authority:
        running_standins.of(authority).reset()


@pytest.fixture
async def tidy() -> AsyncIterator[None]:
    yield
    await WIRES.close()
    await jobs.database.close()


@pytest.fixture
async def box(standins: StandIns, engine_url: str, tidy: None) -> AsyncIterator[Sandbox]:
    """A sandbox of the system, on both engines. The stand-ins note its time."""
    async with Sandbox(jobs.app, url=engine_url) as box:
        note_time_of(box, standins)
        yield box


@pytest.fixture
async def sqlite_box(standins: StandIns, tidy: None) -> AsyncIterator[Sandbox]:
    """The same on SQLite alone, for what has nothing to do with the database."""
    async with Sandbox(jobs.app) as box:
        note_time_of(box, standins)
        yield box


def note_time_of(box: Sandbox, standins: StandIns) -> None:
    begun = box.now

    def seconds() -> float:
        return (box.now - begun).total_seconds()

    for authority in Authority:
        standins.of(authority).clock = seconds
