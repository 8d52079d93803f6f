"""What a process shows of itself: every thread, every task down to where it waits, and the job that each runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import msgspec
from tests.support.waiting import until

from perdure.lifecycle.process.stacks import (
    Attempt,
    Head,
    LoopState,
    Occupied,
    Snapshot,
    TaskStack,
    ThreadStack,
    describe,
    text,
)


def an_attempt(**changes: object) -> Attempt:
    plain = Attempt(job_id="0190", kind="greet", attempt=2, seconds=3.25, mode="task")
    return msgspec.structs.replace(plain, **changes)


def the_task(snapshot: Snapshot, name: str) -> TaskStack:
    [found] = [task for task in snapshot.tasks if task.name == name]
    return found


def the_thread(snapshot: Snapshot, name: str) -> ThreadStack:
    [found] = [thread for thread in snapshot.threads if thread.name == name]
    return found


async def innermost(event: asyncio.Event) -> None:
    await event.wait()


async def lines(event: asyncio.Event) -> AsyncIterator[int]:
    await innermost(event)
    yield 1


async def outermost(event: asyncio.Event) -> None:
    async for _ in lines(event):
        pass


async def parked(event: asyncio.Event, name: str) -> asyncio.Task[None]:
    task = asyncio.create_task(outermost(event), name=name)
    await asyncio.sleep(0)
    return task


async def test_c13_a_task_is_followed_down_to_the_point_at_which_it_waits() -> None:
    """Through coroutines and async generators alike; the innermost line comes last."""
    event = asyncio.Event()
    task = await parked(event, "deep")
    shown = the_task(describe(asyncio.get_running_loop()), "deep")
    assert [frame.function for frame in shown.frames] == ["outermost", "lines", "innermost", "wait"]
    assert shown.frames[2].source == "await event.wait()"
    assert (shown.coroutine, shown.awaits) == ("outermost", "a Future that is not done")
    event.set()
    await task


async def test_c13_a_task_that_waits_for_another_names_it() -> None:
    event = asyncio.Event()
    first = await parked(event, "first")

    async def follow() -> None:
        await first

    second = asyncio.create_task(follow(), name="second")
    await asyncio.sleep(0)
    assert the_task(describe(asyncio.get_running_loop()), "second").awaits == "task first"
    event.set()
    await second


async def test_c13_a_task_that_runs_says_so_and_is_found_in_its_thread() -> None:
    snapshot = describe(asyncio.get_running_loop())
    current = asyncio.current_task()
    assert current is not None
    assert the_task(snapshot, current.get_name()).awaits.startswith("nothing")
    here = the_thread(snapshot, threading.current_thread().name)
    assert here.frames[-1].function == "test_c13_a_task_that_runs_says_so_and_is_found_in_its_thread"


async def test_c13_jobs_are_reported_with_the_task_or_thread_that_runs_them() -> None:
    event, done = asyncio.Event(), threading.Event()
    task = await parked(event, "busy")

    def work() -> None:
        done.wait()

    thread = threading.Thread(target=work, name="handler")
    thread.start()
    await until(lambda: thread.ident)
    occupied = [
        Occupied(an_attempt(), task=task),
        Occupied(an_attempt(job_id="0191", mode="thread"), thread=thread.ident),
        Occupied(an_attempt(job_id="0192", mode="process", pid=4711, seconds=9.0)),
    ]
    snapshot = describe(asyncio.get_running_loop(), occupied=occupied)
    in_task, in_thread = the_task(snapshot, "busy").attempt, the_thread(snapshot, "handler").attempt
    assert (in_task and in_task.job_id, in_thread and in_thread.job_id) == ("0190", "0191")
    assert "work" in [frame.function for frame in the_thread(snapshot, "handler").frames]
    told = text(snapshot)
    assert "task busy outermost runs job 0190 kind greet attempt 2, for 3.2 s" in told
    assert "thread handler" in told
    assert "isolated: job 0192 kind greet attempt 2, for 9.0 s, in process 4711" in told
    done.set()
    thread.join()
    event.set()
    await task


def test_c13_attempts_that_have_not_started_are_listed_too() -> None:
    told = text(describe(occupied=[Occupied(an_attempt(mode="thread"))]))
    assert "waits to begin: job 0190" in told


async def test_c13_the_snapshot_is_plain_data() -> None:
    head = Head(
        worker="w",
        version="1",
        uptime=1.0,
        phase="open",
        running=1,
        concurrency=2,
        backlog=0,
        loops=(LoopState(name="promoter", ticks=4, skipped=1, running_for=0.5),),
    )
    snapshot = describe(asyncio.get_running_loop(), head=head, occupied=[Occupied(an_attempt())])
    assert msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot) == snapshot
    told = text(snapshot)
    assert "worker w, perdure 1, up 1 s, open" in told
    assert "loop promoter: 4 ticks, 1 skipped, runs for 0.5 s" in told


def test_names_cannot_write_to_the_terminal() -> None:
    told = text(describe(occupied=[Occupied(an_attempt(kind="\x1b]0;owned\x07\nforged", pid=1))]))
    assert "owned" in told
    assert not {"\x1b", "\x07"} & set(told)
    assert not any(line.startswith("forged") for line in told.splitlines())


def test_a_process_without_a_loop_can_be_described_from_any_thread() -> None:
    found: list[Snapshot] = []
    thread = threading.Thread(target=lambda: found.append(describe()), name="asker")
    thread.start()
    thread.join()
    assert found[0].tasks == ()
    assert {"asker", threading.main_thread().name} <= {thread.name for thread in found[0].threads}
