"""The public report of what a process does, for programs that run workers themselves."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
from tests.support.waiting import until

from perdure import App
from perdure.diagnostics import describe, stack_signals, text

PATIENCE = 60.0
PROGRAM = """
import asyncio, sys
from perdure import App
from perdure.diagnostics import stack_signals

shop, post = App(f"sqlite:///{sys.argv[1]}"), App(f"sqlite:///{sys.argv[2]}")

begun = []

@shop.job
async def sell() -> None:
    begun.append("sell")
    await asyncio.sleep(600)

@post.job
async def send() -> None:
    begun.append("send")
    await asyncio.sleep(600)

async def main() -> None:
    workers = []
    with stack_signals(workers):
        for app, job in ((shop, sell), (post, send)):
            workers.append(await app.worker())
            await job.enqueue()
        running = [asyncio.create_task(worker.run()) for worker in workers]
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        print("ready", flush=True)
        await asyncio.gather(*running)

asyncio.run(main())
"""


def test_c13_a_program_of_ones_own_prints_all_its_workers_and_ends_with_2(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "shop.db"), str(tmp_path / "post.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGQUIT)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert told.count("──── end of process") == 1
    for kind in ("sell", "send"):
        task = next(piece for piece in told.split("\n\n") if f"kind {kind} attempt 1" in piece)
        assert "await asyncio.sleep(600)" in task
        assert "awaits a Future that is not done" in task


async def test_c13_the_report_is_plain_data_and_names_the_jobs(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    go_on = asyncio.Event()

    @app.job
    async def linger() -> None:
        await go_on.wait()

    async with app:
        handle = await linger.enqueue()
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        await until(lambda: worker.running)
        snapshot = describe([worker])
        go_on.set()
        await handle.result("30s")
        worker.stop()
        await running
    assert [attempt.job_id for attempt in snapshot.attempts] == [handle.id]
    assert snapshot.head is not None
    assert f"runs job {handle.id} kind linger" in text(snapshot)
    assert msgspec.json.decode(msgspec.json.encode(snapshot))["pid"] == snapshot.pid
    assert describe().head is None


async def test_c13_signals_are_left_alone_in_another_thread() -> None:
    before = signal.getsignal(signal.SIGQUIT)

    def enter() -> object:
        with stack_signals():
            return signal.getsignal(signal.SIGQUIT)

    assert await asyncio.to_thread(enter) is before
