"""Jobs that run in processes of their own and do there what would ruin a worker."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from perdure import App, Context, Permanent, Retry
from perdure.domain.jobs.verdicts import Verdict

app = App("sqlite:///unused.db", retry=Retry(attempts=2))
MIB = 1024 * 1024


def judge(error: BaseException) -> Verdict | None:
    """Give up on one kind of error."""
    return Permanent("no use") if isinstance(error, KeyError) else None


@app.job(isolate=True)
def add(a: int, b: int) -> int:
    return a + b


@app.job(isolate=True)
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@app.job(isolate=True)
def tell(ctx: Context, greeting: str = "hello") -> dict[str, object]:
    return {
        "greeting": greeting,
        "attempt": ctx.attempt,
        "token": ctx.token,
        "queue": ctx.queue,
        "closing": ctx.closing,
        "pid": os.getpid(),
        "parent": os.getppid(),
    }


@app.job(isolate=True)
def leave(code: int) -> None:
    print("so long", file=sys.stderr, flush=True)  # noqa: T201 - it must be found in the record
    os._exit(code)


@app.job(isolate=True)
def die_by(name: str) -> None:
    os.kill(os.getpid(), signal.Signals[name])


@app.job(isolate=True)
def crash_natively() -> None:
    ctypes.string_at(0)


@app.job(isolate=True)
def exit_politely() -> None:
    sys.exit(3)


@app.job(isolate=True, memory=64 * MIB)
def eat(mib: int) -> int:
    return len(bytearray(mib * MIB))


@app.job(isolate=True, timeout=timedelta(seconds=0.3))
def never_end() -> None:
    while True:
        time.sleep(60)


@app.job(isolate=True, timeout=timedelta(seconds=0.3))
async def never_end_async() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@app.job(isolate=True, triage=judge)
def fail(how: str) -> None:
    raise {"key": KeyError, "value": ValueError}[how]("as ordered")


@app.job(isolate=True)
def wait_until_stopped(note: str) -> None:
    """Sleep; on being stopped write why, and go on with what stops it."""
    _write(note, str(os.getpid()))
    try:
        time.sleep(60)
    except BaseException as error:
        _write(note, type(error).__name__)
        raise


@app.job(isolate=True)
async def wait_until_stopped_async(ctx: Context, note: str) -> None:
    _write(note, str(os.getpid()))
    try:
        await asyncio.sleep(60)
    except BaseException as error:
        _write(note, f"{type(error).__name__}: {ctx.stopping}")
        raise


@app.job(isolate=True)
def watch_for_closing(ctx: Context, note: str) -> str:
    _write(note, str(os.getpid()))
    until = time.monotonic() + 30
    while not ctx.closing and time.monotonic() < until:
        time.sleep(0.005)
    return "closing" if ctx.closing else "never told"


@app.job(isolate=True)
def ignore_everything(note: str) -> None:
    """Start a process, write both pids, and never listen."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    _write(note, f"{os.getpid()} {child.pid}")
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001, S112 - that is the point
            continue


@app.job(isolate=True)
def leave_a_process_behind() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid


@app.job(isolate=True)
def linger() -> str:
    """Return, and keep the process from ending."""
    threading.Thread(target=time.sleep, args=(60,)).start()
    return "done"


def _write(note: str, text: str) -> None:
    """Leave a note that is never seen half written."""
    draft = Path(f"{note}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(note)
