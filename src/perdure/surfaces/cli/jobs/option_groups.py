"""Groups of options that several commands on jobs take, each written once.

A command declares a group as one parameter and receives it filled in:

    @jobs.command("cancel")
    @with_option_groups
    def cancel(ids: options.JobIds = None, *, which: JobFilters, care: Care) -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from msgspec import Struct, structs

from perdure.operate.commands.actions import Action
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.acting import Order
from perdure.surfaces.cli.jobs.filters import Chosen, age


class OptionGroup(Struct, frozen=True, kw_only=True):
    """Options of the command line, by the names of their parameters."""


class JobFilters(OptionGroup, frozen=True, kw_only=True):
    """Options that choose jobs in any state."""

    state: options.States = None
    kind: options.KindName = None
    queue: options.QueueName = None
    tag: options.Tag = None
    error: options.ErrorText = None
    search: options.Search = None
    where: options.Where = None
    group: options.Group = None
    older_than: options.CreatedBefore = None

    def chosen(self, ids: Iterable[str] | None = None, *, everything: bool = False) -> Chosen:
        """The jobs that match, or those of the ids."""
        return Chosen(
            ids=tuple(ids or ()),
            states=tuple(self.state or ()),
            kind=self.kind,
            queue=self.queue,
            tag=self.tag,
            error=self.error,
            search=self.search,
            where=tuple(self.where or ()),
            group=self.group,
            older_than=age(self.older_than),
            everything=everything,
        )


class EndFilters(OptionGroup, frozen=True, kw_only=True):
    """Options that choose jobs by their end and their mark."""

    finished_after: options.FinishedAfter = None
    finished_before: options.FinishedBefore = None
    mark: options.Mark = None
    unmarked: options.Unmarked = False

    def narrow(self, chosen: Chosen) -> Chosen:
        """The chosen jobs that match these conditions too."""
        return structs.replace(chosen, **structs.asdict(self))


class DeadFilters(OptionGroup, frozen=True, kw_only=True):
    """Options that choose dead letters."""

    kind: options.KindName = None
    queue: options.QueueName = None
    tag: options.Tag = None
    error: options.ErrorText = None
    search: options.Search = None
    where: options.Where = None
    group: options.Group = None
    older_than: options.DiedBefore = None
    finished_after: options.FinishedAfter = None
    mark: options.Mark = None
    unmarked: options.Unmarked = False

    def chosen(self, ids: Iterable[str] | None = None, *, everything: bool = False) -> Chosen:
        """The dead letters that match, or those of the ids."""
        given = structs.asdict(self) | {"where": tuple(self.where or ()), "older_than": age(self.older_than)}
        return Chosen(ids=tuple(ids or ()), by_death=True, everything=everything, **given)


class Care(OptionGroup, frozen=True, kw_only=True):
    """Options of a command that changes jobs: how many, why, and whether to ask first."""

    everything: options.All = False
    limit: options.CommandLimit = None
    why: options.Why = None
    yes: options.Yes = False
    dry_run: options.DryRun = False
    detach: options.Detach = False
    as_json: options.Json = False

    def order(self, action: Action, *, mark: str | None = None, run_at: datetime | timedelta | None = None) -> Order:
        """The operator's command."""
        return Order(
            action=action,
            as_json=self.as_json,
            yes=self.yes,
            dry_run=self.dry_run,
            detach=self.detach,
            limit=self.limit,
            mark=mark,
            run_at=run_at,
            why=self.why,
        )


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each option group in a command's parameters with its fields, as separate options."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[OptionGroup]] = {}
    offered: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if inspect.isclass(parameter.annotation) and issubclass(parameter.annotation, OptionGroup):
            groups[name] = parameter.annotation
            offered += _options_of(parameter.annotation)
        else:
            offered.append(parameter)

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field: given.pop(field) for field in group.__struct_fields__})
        command(**given)

    run.__signature__ = signature.replace(parameters=offered)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in offered}
    return run


def _options_of(group: type[OptionGroup]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in structs.fields(group)
    ]
