"""The lists of the screen: the columns of each, and the cells of a row.

A row is found again by its key when the screen is refreshed, so that the cursor stays on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from perdure.domain.operate.statistics import Group
from perdure.domain.worker import Phase, WorkerView
from perdure.operate.views.failure_groups import FailureGroup
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.times import relative, rough
from perdure.surfaces.top.figures import NOTHING, count, rate, seconds, share, sparkline
from perdure.surfaces.top.look import Look

_NAME_LIMIT_COLUMNS: Final = 28
_LEAST_COLUMNS: Final = 8
_PADDING_COLUMNS: Final = 2  # of a cell
_SCROLLBAR_COLUMNS: Final = 2
_TREND_COLUMNS: Final = 12
_SIGN: Final = {Phase.OPENING: "✿ opening", Phase.CLOSING: "❀ closing"}
_HIGH_FAILURE_SHARE: Final = 0.1
_SPAN_SECONDS: Final = {"1h": 3_600.0, "1d": 86_400.0, "7d": 604_800.0}


def span_seconds(span: str) -> float:
    """How long a span of the screen is."""
    return _SPAN_SECONDS[span]


class Row(Struct, frozen=True):
    """One row: its key, the thing that it shows, and its cells.

    `flag` follows the cell that may be cut, and is never cut itself.
    """

    key: str
    about: Any
    cells: tuple[Text, ...]
    flag: Text = Text()


class ListView(Struct, frozen=True):
    """One list of the screen.

    `hidden_when_narrow` are the columns for which a terminal of 80 characters has no room. If the others do not fit
    either, the cells of `gives_way` are cut.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Callable[[Look], list[Row]]
    gives_way: str
    hidden_when_narrow: frozenset[str] = frozenset()
    empty: str = ""

    def fitted(self, rows: Sequence[Row], columns: Sequence[str], width: int) -> list[list[Text]]:
        """The cells of these columns, so that a row fits the width of the terminal."""
        places = [self.columns.index(column) for column in columns]
        widest = {
            place: max([cell_len(self.columns[place]), *(row.cells[place].cell_len for row in rows)])
            for place in places
            if self.columns[place] != self.gives_way
        }
        taken = sum(widest.values()) + _PADDING_COLUMNS * len(places) + _SCROLLBAR_COLUMNS
        room = max(width - taken, _LEAST_COLUMNS)
        return [
            [row.cells[place] if place in widest else _fit(row.cells[place], row.flag, room) for place in places]
            for row in rows
        ]


def _fit(text: Text, flag: Text, room: int) -> Text:
    cut = text.copy()
    cut.truncate(max(room - flag.cell_len, _LEAST_COLUMNS), overflow="ellipsis")
    return Text.assemble(cut, flag)


def _queues(look: Look) -> list[Row]:
    return [Row(queue.name, queue, _queue_cells(queue, look), _queue_flag(queue)) for queue in look.queues]


def _queue_flag(queue: QueueView) -> Text:
    if queue.paused:
        return Text(" paused", style="magenta")
    if queue.workers:
        return Text()
    return Text(" no worker", style="bold red" if queue.ready else "dim")


def _queue_cells(queue: QueueView, look: Look) -> tuple[Text, ...]:
    oldest = NOTHING if queue.oldest_ready_at is None else rough(look.at - queue.oldest_ready_at)
    return (
        _name(queue.name),
        _right(count(queue.ready, capped=queue.ready_capped)),
        _right(oldest),
        _right(f"{queue.running:,}/{queue.slots:,}"),
        *_statistics(queue.statistics, look.span),
    )


def _kinds(look: Look) -> list[Row]:
    rows = []
    for kind in look.kinds:
        dead = _right(count(kind.dead), "bold red" if kind.dead else "dim")
        cells = (_name(kind.name), dead, *_statistics(kind.statistics, look.span))
        rows.append(Row(kind.name, kind, cells, Text(" paused" if kind.paused else "", style="magenta")))
    return rows


def _statistics(group: Group, span: str) -> tuple[Text, ...]:
    total = group.total
    failed = total.failure_share
    return (
        _right(rate(total.finished, span_seconds(span))),
        _right(seconds(total.wait.p95)),
        _right(seconds(total.run.p95)),
        _right(share(failed), "bold red" if failed is not None and failed >= _HIGH_FAILURE_SHARE else ""),
        Text(sparkline([point.finished for point in group.points[:-1]], _TREND_COLUMNS), style="green"),
    )


def _workers(look: Look) -> list[Row]:
    return [Row(str(worker.id), worker, _worker_cells(worker, look)) for worker in look.workers]


def _worker_cells(worker: WorkerView, look: Look) -> tuple[Text, ...]:
    return (
        _short_name(worker.name),
        _phase(worker, is_lost=look.is_lost(worker)),
        _right(f"{worker.running:,}/{worker.concurrency:,}"),
        Text(relative(worker.beat_at, look.at), style="bold red" if look.is_lost(worker) else ""),
        Text(relative(worker.started_at, look.at)),
        Text(one_line(", ".join(worker.queues))),
    )


def _phase(worker: WorkerView, *, is_lost: bool) -> Text:
    if is_lost:
        return Text("lost", style="bold red")
    if worker.quiet_at is not None or worker.phase is Phase.QUIET:
        return Text(_SIGN.get(worker.phase, "quiet"), style="magenta")
    style = "yellow" if worker.phase is Phase.CLOSING else "green"
    return Text(_SIGN.get(worker.phase, str(worker.phase)), style=style)


def _failures(look: Look) -> list[Row]:
    return [Row(group.fingerprint, group, _failure_cells(group, look.at)) for group in look.groups]


def _failure_cells(group: FailureGroup, now: datetime) -> tuple[Text, ...]:
    return (
        _right(count(group.jobs, capped=group.jobs_capped), "bold red"),
        _short_name(group.kind),
        Text(relative(group.last_at, now)),
        Text(sparkline(group.trend, len(group.trend)), style="red"),
        Text(one_line(f"{group.error_type}: {group.message}" if group.error_type else group.message)),
    )


def _name(text: str) -> Text:
    return Text(one_line(text), style="bold")


def _short_name(text: str) -> Text:
    name = _name(text)
    name.truncate(_NAME_LIMIT_COLUMNS, overflow="ellipsis")
    return name


def _right(text: str, style: str = "") -> Text:
    return Text(text, style=style, justify="right")


_FIGURES: Final = ("finished", "wait p95", "run p95", "failed", "trend")
LISTS: Final[Sequence[ListView]] = (
    ListView(
        name="queues",
        title="Queues",
        columns=("queue", "ready", "oldest", "running", *_FIGURES),
        rows=_queues,
        gives_way="queue",
        hidden_when_narrow=frozenset({"wait p95", "trend"}),
        empty="No queue has been used yet.",
    ),
    ListView(
        name="workers",
        title="Workers",
        columns=("worker", "phase", "running", "heartbeat", "started", "queues"),
        rows=_workers,
        gives_way="queues",
        hidden_when_narrow=frozenset({"started"}),
        empty="No worker is running. Start one: perdure worker your_module:app",
    ),
    ListView(
        name="failures",
        title="Dead letters",
        columns=("dead", "kind", "last seen", "last 24 h", "error"),
        rows=_failures,
        gives_way="error",
        hidden_when_narrow=frozenset({"last 24 h"}),
        empty="No dead letters.",
    ),
    ListView(
        name="kinds",
        title="Kinds",
        columns=("kind", "dead", *_FIGURES),
        rows=_kinds,
        gives_way="kind",
        hidden_when_narrow=frozenset({"trend"}),
        empty="No kind has been seen yet.",
    ),
)
