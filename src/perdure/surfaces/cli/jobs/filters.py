"""From a command's options to a job filter."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.operate.commands.job_commands import Which
from perdure.operate.desk import Desk
from perdure.operate.search import parse_condition
from perdure.storage.records import JobFilter
from perdure.surfaces.cli.terminal.times import read_time


class Chosen(Struct, frozen=True, kw_only=True):
    """The jobs that a command line names: ids, or conditions, or all."""

    ids: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    kind: str | None = None
    queue: str | None = None
    tag: str | None = None
    error: str | None = None
    search: str | None = None
    where: tuple[str, ...] = ()
    group: str | None = None
    older_than: timedelta | None = None
    by_death: bool = False
    finished_after: str | None = None
    finished_before: str | None = None
    mark: str | None = None
    unmarked: bool = False
    everything: bool = False

    @property
    def has_conditions(self) -> bool:
        """Whether options other than ids were given."""
        given = (self.kind, self.queue, self.tag, self.error, self.older_than, self.mark, self.finished_after)
        others = (self.finished_before, self.search, self.group)
        return bool(self.states or self.unmarked or self.where) or any(each is not None for each in (*given, *others))

    async def which(self, desk: Desk) -> Which:
        """The ids, or the filter."""
        return self.ids or await self.filter(desk)

    async def filter(self, desk: Desk) -> JobFilter:
        """The conditions as a filter: ages count back from the database's now; states may be the app's words."""
        now = await desk.now()
        edge = None if self.older_than is None else now - self.older_than
        meant = await desk.meaning(self.states, self.kind)
        which = JobFilter(
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
            fingerprint=self.group,
            where=tuple(parse_condition(text) for text in self.where),
        )
        return which if self.search is None else _both(which, await desk.filter(self.search))


def _both(options: JobFilter, search: JobFilter) -> JobFilter:
    """The combined conditions of options and search; refuses a condition that both contain."""
    said = {name: getattr(search, name) for name in search.__struct_fields__ if getattr(search, name) not in (None, ())}
    for name in said:
        if name != "where" and getattr(options, name) is not None:
            raise ArgumentError("--search", f"and the options both give {name}: give it once")
    return replace(options, **said | {"where": options.where + search.where})


def _moment(option: str, text: str | None, now: datetime) -> datetime | None:
    return None if text is None else read_time(option, text).when(now)


def age(text: str | None) -> timedelta | None:
    """Parse `--older-than`."""
    return None if text is None else parse_duration("--older-than", text)


def check_chosen(chosen: Chosen) -> None:
    """Refuse a command that names no jobs, or names them in two ways."""
    if chosen.ids and (chosen.has_conditions or chosen.everything):
        raise ArgumentError("ID", "and options that choose jobs are both given: use one or the other")
    if not (chosen.ids or chosen.has_conditions or chosen.everything):
        raise ArgumentError(
            "ID", "is missing: name jobs by id or ref, choose them by options such as --kind, or give --all"
        )
