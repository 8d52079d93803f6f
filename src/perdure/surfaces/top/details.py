"""One row explained in full, with the commands that do the same from a shell."""

from __future__ import annotations

from datetime import datetime
from shlex import quote
from typing import Any

from perdure.domain.worker import WorkerView
from perdure.operate.views.failure_groups import FailureGroup
from perdure.operate.views.kind_views import KindView
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.times import both
from perdure.surfaces.top.figures import seconds


def details(about: Any, now: datetime) -> tuple[str, tuple[str, ...]]:
    """The title and the lines."""
    if isinstance(about, FailureGroup):
        return _failure(about, now)
    if isinstance(about, WorkerView):
        return _worker(about, now)
    if isinstance(about, QueueView):
        return f"Queue {one_line(about.name)}", (*_figures(about), "", *_commands("queue", about.name))
    return f"Kind {one_line(about.name)}", (*_figures(about), "", *_commands("kind", about.name))


def _figures(view: QueueView | KindView) -> tuple[str, ...]:
    total = view.statistics.total
    return (
        f"finished {total.finished:,}   failed attempts {total.failed:,}   dead {total.died:,}",
        f"wait p50 {seconds(total.wait.p50)}   p95 {seconds(total.wait.p95)}   p99 {seconds(total.wait.p99)}",
        f"run  p50 {seconds(total.run.p50)}   p95 {seconds(total.run.p95)}   p99 {seconds(total.run.p99)}",
    )


def _commands(word: str, name: str) -> tuple[str, ...]:
    shown = quote(one_line(name))
    return f"perdure jobs list --{word} {shown}", f"perdure pause --{word} {shown}"


def _failure(group: FailureGroup, now: datetime) -> tuple[str, tuple[str, ...]]:
    lines = (
        one_line(f"{group.error_type}: {group.message}"),
        "",
        f"dead now     {group.jobs:,}{'+' if group.jobs_capped else ''}",
        f"first seen   {both(group.first_at, now)}",
        f"last seen    {both(group.last_at, now)}",
        f"newest job   {group.newest}",
        "",
        f"perdure jobs show {group.newest}",
        f"perdure dead list --group {group.fingerprint}",
        f"perdure dead requeue --group {group.fingerprint}",
    )
    return f"Dead letters of {one_line(group.kind)}", lines


def _worker(worker: WorkerView, now: datetime) -> tuple[str, tuple[str, ...]]:
    lines = (
        f"phase        {worker.phase}",
        f"running      {worker.running:,} of {worker.concurrency:,}",
        f"queues       {one_line(', '.join(worker.queues))}",
        f"heartbeat    {both(worker.beat_at, now)}",
        f"started      {both(worker.started_at, now)}",
        f"process      {one_line(worker.process.host)} pid {worker.process.pid}",
        f"version      {one_line(worker.version)}",
        "",
        f"perdure quiet {worker.id}",
    )
    return f"Worker {one_line(worker.name)}", lines
