"""A desk on a database that takes no writes, and commands on it: everything is read, every change is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.builders.jobs import a_job
from tests.support.programs.look_at_desk import JOB, command, look
from tests.support.without_rights import run_without_rights

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.operate.desk import Desk
from perdure.surfaces.server.backing import Backing

MODULE = "tests.support.programs.look_at_desk"
STANDBY = "&options=-c%20default_transaction_read_only%3Don"


async def _filled(url: str) -> str:
    """A pause whose time is over, which any look would end; the secret of a new token."""
    store = store_for(url, ManualClock())
    await store.open()
    await store.migrate()
    desk = Desk(store, "ada")
    await store.insert([a_job(id=JobId(JOB), queue="mail")])
    await desk.holds.pause(queue="mail", until=await desk.now() + timedelta(minutes=1))
    await store.close()
    store = store_for(url)
    await store.open()
    secret = (await Desk(store, "ada").create_token("anna", "admin"))[1]
    await store.close()
    return secret


@pytest.fixture
def read_only_url(engine_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that takes no writes: sessions that only read, or a file without the right to write it."""
    if engine_url.startswith("postgresql"):
        yield engine_url + STANDBY
        return
    folder = tmp_path / "kept"
    folder.mkdir()
    yield f"sqlite:///{folder}/a.db"
    folder.chmod(0o755)


def test_all_is_read_and_every_command_is_refused_with_the_reason(read_only_url: str) -> None:
    secret = asyncio.run(_filled(read_only_url.removesuffix(STANDBY)))
    if read_only_url.startswith("sqlite"):
        folder = Path(read_only_url.removeprefix("sqlite:///")).parent
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        seen = run_without_rights(MODULE, read_only_url, secret)
        why = "the file is not writable by this process: check its owner and mode"
    else:
        seen = asyncio.run(look(read_only_url, secret)) | command(read_only_url)
        why = "the server lets its sessions only read (default_transaction_read_only)"
    assert {path for path, status in seen["pages"].items() if status not in {200, 404}} == {
        "/jobs?q=colour:red",
        "/tokens",
    }
    assert {path for path, status in seen["reads"].items() if status not in {200, 404}} == {
        "/api/v1/events",  # its log is off
        "/api/v1/events/stream",
        f"/api/v1/jobs/{JOB}/preview",  # the policy is in code
        "/api/v1/tokens",
    }
    refused = [403, f"This desk is read-only: {why}."]
    assert {name: told for name, told in seen["commands"].items() if told[1] and told != refused} == {}
    assert {told[0] for told in seen["commands"].values()} == {403}
    assert seen["login"] == 303
    assert f'<span title="{why}">read-only desk</span>' in seen["page"]
    assert f'disabled title="this desk is read-only: {why}"' in seen["page"]
    assert {line: code for line, code in seen["codes"].items() if code != 0} == {"doctor": 5}  # no worker serves mail
    assert {code for code, _ in seen["errors"].values()} == {1}
    assert all("read-only" in error for _, error in seen["errors"].values()), seen["errors"]
    assert (seen["about"]["read_only"], seen["about"]["scope"], seen["bulk runs"]) == (True, "read", False)


async def test_a_standby_that_is_promoted_lets_the_desk_write_within_seconds(
    engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by the database at most every five seconds, whatever the engine."""
    clock = ManualClock()
    await _filled(engine_url)
    backing = Backing(engine_url, clock=clock)
    store = await backing.store()
    answers: list[str | None] = ["the server is a standby", None]

    async def told() -> str | None:
        return answers.pop(0)

    monkeypatch.setattr(store, "why_read_only", told)
    clock.move(timedelta(seconds=5))
    await backing.store()
    assert backing.why_read_only() == "the server is a standby"
    clock.move(timedelta(seconds=4))
    await backing.store()
    assert backing.why_read_only() is not None
    clock.move(timedelta(seconds=1))
    await backing.store()
    assert backing.why_read_only() is None
    await backing.close()
