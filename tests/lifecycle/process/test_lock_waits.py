"""Where threads and tasks wait for locks that others hold."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading

import pytest
from tests.support.waiting import until

from perdure.lifecycle.process import lock_waits
from perdure.lifecycle.process.lock_waits import sample_lock_waits


async def test_c13_threads_and_tasks_that_wait_for_a_lock_are_named_with_their_line_and_their_time() -> None:
    lock, condition, task_lock = threading.Lock(), threading.Condition(), asyncio.Lock()

    def wait_for_lock() -> None:
        with lock:
            pass

    def wait_for_condition() -> None:
        condition.acquire()
        condition.release()

    async def wait_for_task_lock() -> None:
        async with task_lock:
            pass

    with lock, condition:
        await task_lock.acquire()
        waiting = [threading.Thread(target=one) for one in (wait_for_lock, wait_for_condition)]
        for thread in waiting:
            thread.start()
        task = asyncio.create_task(wait_for_task_lock())
        found = await asyncio.to_thread(sample_lock_waits, 0.2, asyncio.get_running_loop())
        task_lock.release()
        await task
    for thread in waiting:
        thread.join()
    for name in ("wait_for_lock", "wait_for_condition"):
        [place] = [one for one in found.threads if one.where.endswith(name)]
        assert f"{__file__}:" in place.where
        assert 0 < place.seconds <= found.seconds + 0.001
    [place] = [one for one in found.tasks if "wait_for_task_lock" in one.where]
    assert 0 < place.seconds <= found.seconds + 0.001


async def test_c13_threads_and_tasks_that_wait_for_work_are_left_out() -> None:
    work: queue.Queue[None] = queue.Queue()
    over, tasks_over = threading.Event(), asyncio.Event()

    def take() -> None:
        work.get()

    def wait() -> None:
        over.wait()

    threads = [threading.Thread(target=one) for one in (take, wait)]
    for thread in threads:
        thread.start()
    task = asyncio.create_task(tasks_over.wait())
    found = await asyncio.to_thread(sample_lock_waits, 0.1, asyncio.get_running_loop())
    work.put(None)
    over.set()
    tasks_over.set()
    await task
    for thread in threads:
        thread.join()
    assert [one for one in (*found.threads, *found.tasks) if one.where.endswith((" take", " wait"))] == []


async def test_no_other_thread_runs_on_while_stacks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python 3.11 this has ended a process with a segmentation fault."""
    before, seen, genuine = sys.getswitchinterval(), set[float](), lock_waits._line

    def line(*given: object) -> object:
        seen.add(sys.getswitchinterval())
        return genuine(*given)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(lock_waits, "_line", line)
    sample = asyncio.create_task(asyncio.to_thread(sample_lock_waits, 0.1, asyncio.get_running_loop()))
    await until(sample.done)
    assert seen == {1.0}
    assert sys.getswitchinterval() == before
