"""The demo runs by itself, closes in good order when it is interrupted, and opens where it left off."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from typer import Exit

from perdure import ConflictError
from perdure_systems.demo.__main__ import run
from perdure_systems.demo.outside import World
from perdure_systems.demo.screen import Screen
from perdure_systems.demo.tour import Tour
from perdure_systems.kit.serving import LOOPBACK, bind

PATIENCE = 240.0


async def demo(folder: Path, *options: str, **variables: str) -> asyncio.subprocess.Process:
    """Start the demo as `make demo` does; without a terminal it goes on by itself."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "perdure_systems.demo", "--folder", str(folder), "--pause", "0", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        stdin=asyncio.subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **variables},
    )


async def read_until(process: asyncio.subprocess.Process, text: str) -> str:
    """What it prints until a line with this text, or until its end."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            lines.append(line.decode())
            if text in lines[-1]:
                break
    return "".join(lines)


async def test_the_tour_keeps_its_promises_and_goes_on_after_an_interrupt(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with bind(LOOPBACK, 0) as taken:
        port = taken.getsockname()[1]
        first = await demo(folder, "--port", str(port))
        said = await read_until(first, "the parent holds no worker")
        assert f"port {port} is in use: the pages took free ports instead" in said
        assert "this step failed" not in said
        assert said.index("/desk/") < said.index("1/8"), "the desk comes first"

        first.send_signal(signal.SIGINT)
        began = time.monotonic()
        said = await read_until(first, "never printed")
        assert await first.wait() == 0, said
        assert "closed (all workers in good order)" in said
        assert time.monotonic() - began < 18, "within seconds, although the model is silent"

    second = await demo(folder, "--port", str(port), PATH=str(Path(sys.executable).parent))  # there is no Chromium
    said = await read_until(second, "never printed")
    assert await second.wait() == 0, said
    assert "opening where the last demo left off" in said
    assert "skipped: there is no Chromium on this machine" in said
    assert "7 of 8 steps kept their promise, 1 skipped" in said
    assert "this step failed" not in said


async def test_an_interrupt_while_it_opens_closes_in_good_order(tmp_path: Path) -> None:
    opening = await demo(tmp_path / "demo", "--port", str(free_port()))
    await read_until(opening, "✿ opening")
    opening.send_signal(signal.SIGTERM)
    said = await read_until(opening, "never printed")
    assert await opening.wait() == 0, said
    assert "❀ closed (all workers in good order)" in said


@pytest.mark.proof
async def test_a_tour_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    killed = await demo(tmp_path / "demo", "--port", str(free_port()))
    await read_until(killed, "logs in")
    parts = children_of(killed.pid)
    assert len(parts) == 2
    killed.kill()
    await killed.wait()
    async with asyncio.timeout(60):
        while any(Path(f"/proc/{part}").exists() for part in parts):
            await asyncio.sleep(0.1)


def free_port() -> int:
    with bind(LOOPBACK, 0) as taken:
        return int(taken.getsockname()[1])


def children_of(pid: int) -> list[str]:
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return " ".join(file.read_text() for file in found).split()


async def test_an_interrupt_at_the_end_of_a_part_does_not_kill_it() -> None:
    """A second Ctrl-C reaches the parts while they end: after their event loop, before their process."""
    code = """
import asyncio, os, signal
from perdure_systems.demo.processes import stop_with_the_tour
async def main():
    stopping = asyncio.Event()
    stop_with_the_tour(stopping)
    os.kill(os.getpid(), signal.SIGINT)
    await stopping.wait()
asyncio.run(main())
os.kill(os.getpid(), signal.SIGINT)
"""
    part = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE)
    await part.communicate(b"")  # the end of its input: the tour is gone
    assert part.returncode == 0


class Reader:
    """A desk and a page of one message that fails by itself while the reader of the tour is away."""

    def __init__(self, failed: int) -> None:
        self.failed = failed

    async def run_now(self, _: str) -> None:
        """Runs by itself at this moment, or is dead: an operator cannot start it."""
        self.failed = min(self.failed + 1, 5)
        raise ConflictError("job is running")

    async def show(self, *_: object) -> dict[str, object]:
        """The message as its users see it."""
        return {"retry_count": self.failed, "status": "dead" if self.failed == 5 else "failed"}

    async def desk(self, _: str) -> Reader:
        """The desk of the app."""
        return self


@pytest.mark.parametrize("failed", [1, 3, 5])
async def test_a_reader_who_takes_their_time_finds_the_message_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: int
) -> None:
    tour, reader = a_tour(tmp_path), Reader(failed)
    tour._message = {"id": "m-1"}
    monkeypatch.setattr(tour, "_get", reader.show)
    monkeypatch.setattr(tour, "_app", reader)
    await tour._fail_until_dead()
    assert reader.failed == 5


async def test_what_the_engine_refuses_fails_one_step_and_not_the_tour(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refused() -> None:
        raise ConflictError("job is running")

    assert not await a_tour(tmp_path)._is_shown(refused)
    assert "this step failed: job is running" in capsys.readouterr().out


def a_tour(folder: Path) -> Tour:
    """A tour in which nothing has begun."""
    world = World(folder, f"sqlite:///{folder / 'demo.db'}")
    world.environment = {"PERDURE_URL": f"sqlite:///{folder / 'demo.db'}"}
    return Tour(screen=Screen(auto=True, pause=0), world=world, addresses={}, crew=(), is_first=True)


def test_a_folder_that_cannot_be_used_is_a_plain_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(Exit):
        run(folder=tmp_path / "file" / "demo")
    shown = " ".join(capsys.readouterr().out.split())
    assert "Not a directory" in shown
    assert "choose another folder with --folder" in shown
