"""The lists of the screen: which columns each has, and what stands in a row.

A row is found again by its key when the screen is refreshed, so that the cursor stays on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from rich.text import Text

from perdure.domain.operate.statistics import Group
from perdure.domain.worker import Phase, WorkerView
from perdure.operate.views.failure_groups import FailureGroup
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.times import relative, rough
from perdure.surfaces.top.figures import NOTHING, count, rate, seconds, share, sparkline
from perdure.surfaces.top.look import Look

_NAME_WIDTH: Final = 28
_MESSAGE_WIDTH: Final = 56
_TREND_WIDTH: Final = 12
_SIGN: Final = {Phase.OPENING: "✿ opening", Phase.CLOSING: "❀ closing"}
_HIGH_FAILURE_SHARE: Final = 0.1
_SPAN_SECONDS: Final = {"1h": 3_600.0, "1d": 86_400.0, "7d": 604_800.0}


def span_seconds(span: str) -> float:
    """How long a span of the screen is."""
    return _SPAN_SECONDS[span]


class Row(Struct, frozen=True):
    """One row: its key, the thing that it shows, and its cells."""

    key: str
    about: Any
    cells: tuple[Text, ...]


class ListView(Struct, frozen=True):
    """One list of the screen. `hidden_when_narrow` are the columns that a terminal of 80 columns has no room for."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Callable[[Look], list[Row]]
    hidden_when_narrow: frozenset[str] = frozenset()
    empty: str = ""


def _queues(look: Look) -> list[Row]:
    return [Row(queue.name, queue, _queue_cells(queue, look)) for queue in look.queues]


def _queue_cells(queue: QueueView, look: Look) -> tuple[Text, ...]:
    oldest = NOTHING if queue.oldest_ready_at is None else rough(look.at - queue.oldest_ready_at)
    name = _name(queue.name)
    if queue.paused:
        name.append(" paused", style="magenta")
    elif not queue.workers:
        name.append(" no worker", style="bold red")
    return (
        name,
        _right(count(queue.ready, capped=queue.ready_capped)),
        _right(oldest),
        _right(f"{queue.running:,}/{queue.slots:,}"),
        *_statistics(queue.statistics, look.span),
    )


def _kinds(look: Look) -> list[Row]:
    rows = []
    for kind in look.kinds:
        name = _name(kind.name)
        if kind.paused:
            name.append(" paused", style="magenta")
        dead = _right(count(kind.dead), "bold red" if kind.dead else "dim")
        rows.append(Row(kind.name, kind, (name, dead, *_statistics(kind.statistics, look.span))))
    return rows


def _statistics(group: Group, span: str) -> tuple[Text, ...]:
    total = group.total
    failed = total.failure_share
    return (
        _right(rate(total.finished, span_seconds(span))),
        _right(seconds(total.wait.p95)),
        _right(seconds(total.run.p95)),
        _right(share(failed), "bold red" if failed is not None and failed >= _HIGH_FAILURE_SHARE else ""),
        Text(sparkline([point.finished for point in group.points[:-1]], _TREND_WIDTH), style="green"),
    )


def _workers(look: Look) -> list[Row]:
    return [Row(str(worker.id), worker, _worker_cells(worker, look.at)) for worker in look.workers]


def _worker_cells(worker: WorkerView, now: datetime) -> tuple[Text, ...]:
    is_quiet = worker.quiet_at is not None or worker.phase is Phase.QUIET
    phase = _SIGN.get(worker.phase, "quiet" if is_quiet else str(worker.phase))
    return (
        _name(worker.name),
        Text(phase, style="magenta" if is_quiet else "yellow" if worker.phase is Phase.CLOSING else "green"),
        _right(f"{worker.running:,}/{worker.concurrency:,}"),
        Text(relative(worker.beat_at, now)),
        Text(relative(worker.started_at, now)),
        Text(one_line(", ".join(worker.queues), _MESSAGE_WIDTH)),
    )


def _failures(look: Look) -> list[Row]:
    return [Row(group.fingerprint, group, _failure_cells(group, look.at)) for group in look.groups]


def _failure_cells(group: FailureGroup, now: datetime) -> tuple[Text, ...]:
    return (
        _right(count(group.jobs, capped=group.jobs_capped), "bold red"),
        _name(group.kind),
        Text(relative(group.last_at, now)),
        Text(sparkline(group.trend, len(group.trend)), style="red"),
        Text(one_line(f"{group.error_type}: {group.message}", _MESSAGE_WIDTH)),
    )


def _name(text: str) -> Text:
    return Text(one_line(text, _NAME_WIDTH), style="bold")


def _right(text: str, style: str = "") -> Text:
    return Text(text, style=style, justify="right")


_FIGURES: Final = ("finished", "wait p95", "run p95", "failed", "trend")
LISTS: Final[Sequence[ListView]] = (
    ListView(
        name="queues",
        title="Queues",
        columns=("queue", "ready", "oldest", "running", *_FIGURES),
        rows=_queues,
        hidden_when_narrow=frozenset({"wait p95", "trend"}),
        empty="No queue has been used yet.",
    ),
    ListView(
        name="workers",
        title="Workers",
        columns=("worker", "phase", "running", "heartbeat", "started", "queues"),
        rows=_workers,
        hidden_when_narrow=frozenset({"started"}),
        empty="No worker is running. Start one: perdure worker your_module:app",
    ),
    ListView(
        name="failures",
        title="Dead letters",
        columns=("dead", "kind", "last seen", "last 24 h", "error"),
        rows=_failures,
        hidden_when_narrow=frozenset({"last 24 h"}),
        empty="No dead letters.",
    ),
    ListView(
        name="kinds",
        title="Kinds",
        columns=("kind", "dead", *_FIGURES),
        rows=_kinds,
        hidden_when_narrow=frozenset({"trend"}),
        empty="No kind has been seen yet.",
    ),
)
