"""From a command's options to the filter that they mean."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk, Which
from perdure.storage.records import JobFilter
from perdure.surfaces.cli.terminal.times import read_time


class Chosen(Struct, frozen=True, kw_only=True):
    """The jobs that a command line speaks of: ids, or conditions, or all."""

    ids: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    kind: str | None = None
    queue: str | None = None
    tag: str | None = None
    error: str | None = None
    older_than: timedelta | None = None
    by_death: bool = False
    finished_after: str | None = None
    finished_before: str | None = None
    mark: str | None = None
    unmarked: bool = False
    everything: bool = False

    @property
    def has_conditions(self) -> bool:
        """Whether anything but ids was said."""
        given = (self.kind, self.queue, self.tag, self.error, self.older_than, self.mark, self.finished_after)
        return bool(self.states or self.unmarked) or any(value is not None for value in (*given, self.finished_before))

    async def which(self, desk: Desk) -> Which:
        """The ids, or the filter."""
        return self.ids or await self.filter(desk)

    async def filter(self, desk: Desk) -> JobFilter:
        """The conditions as a filter: ages counted back from the database's now, and states in whosever words."""
        now = await desk.now()
        edge = None if self.older_than is None else now - self.older_than
        meant = await desk.meaning(self.states, self.kind)
        return JobFilter(
            states=meant.states,
            kind=meant.kind,
            queue=self.queue,
            tag=self.tag,
            error=self.error,
            created_before=None if self.by_death else edge,
            finished_before=edge if self.by_death else _moment("--finished-before", self.finished_before, now),
            finished_after=_moment("--finished-after", self.finished_after, now),
            mark=self.mark,
            marked=False if self.unmarked else None,
        )


def _moment(option: str, text: str | None, now: datetime) -> datetime | None:
    return None if text is None else read_time(option, text).when(now)


def age(text: str | None) -> timedelta | None:
    """Read `--older-than`."""
    return None if text is None else parse_duration("--older-than", text)


def check_chosen(chosen: Chosen) -> None:
    """Refuse a command that names no jobs, or names them in two ways."""
    if chosen.ids and (chosen.has_conditions or chosen.everything):
        raise ArgumentError("ID", "and options that choose jobs are both given: use one or the other")
    if not (chosen.ids or chosen.has_conditions or chosen.everything):
        raise ArgumentError(
            "ID", "is missing: name jobs by id or ref, choose them by options such as --kind, or give --all"
        )
