"""Shell completion of states, kinds, queues, ids and names. Bounded, quick, and silent on errors.

It queries only the database, which takes milliseconds; importing the app's code may take seconds.

Anyone who may enqueue jobs can choose names, and a shell inserts the suggestions unchanged; the script for zsh even
evaluates them. Therefore only names without meaning to any shell are suggested.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from perdure.operate.desk import Desk

Complete = Callable[..., list[str]]
_JOBS_SUGGESTED: Final = 200  # the newest jobs
_TIMEOUT_SECONDS: Final = 1.5  # seconds
_HARMLESS: Final = re.compile(r"[\w.@%+=:,/][\w.@%+=:,/-]*")  # a plain word in every shell, and no option
_HARMLESS_SEARCH: Final = re.compile(r"[\w.@%+=:,/~ -]*")  # the same inside quotes


def complete_state(incomplete: str) -> list[str]:
    """The states of a job."""
    from perdure.domain.jobs.states import JobState  # noqa: PLC0415 - for those who press Tab

    return [state for state in JobState if state.startswith(incomplete)]


def complete_search(incomplete: str, ctx: typer.Context | None = None) -> list[str]:
    """Completions of the last word of a search."""

    async def look(desk: Desk) -> list[str]:
        done = incomplete[: len(incomplete) - len(incomplete.rsplit(" ", maxsplit=1)[-1])]
        return [done + each.text for each in await desk.suggestions(incomplete)]

    return _offered(incomplete, look, ctx, _HARMLESS_SEARCH)


def _completion(look: Callable[[Desk], Awaitable[Iterable[str]]], *, in_order: bool = False) -> Complete:
    """Completes with names from the database."""

    def complete(incomplete: str, ctx: typer.Context | None = None) -> list[str]:
        names = _offered(incomplete, look, ctx, _HARMLESS)
        return names if in_order else sorted(names)

    return complete


def _offered(
    incomplete: str,
    look: Callable[[Desk], Awaitable[Iterable[str]]],
    ctx: typer.Context | None,
    harmless: re.Pattern[str],
) -> list[str]:
    with suppress(Exception):  # an error would be printed into the line that the user is typing
        names = dict.fromkeys(_names(look, None if ctx is None else ctx.params.get("url")))
        return [name for name in names if harmless.fullmatch(name) and name.startswith(incomplete)]
    return []


def _names(look: Callable[[Desk], Awaitable[Iterable[str]]], url: str | None) -> Iterable[str]:
    from perdure.surfaces.cli.session import with_desk  # noqa: PLC0415 - for those who press Tab

    async def in_time(desk: Desk) -> Iterable[str]:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await look(desk)

    return with_desk(url, in_time)


def _of_jobs(field: str) -> Callable[[Desk], Awaitable[list[str]]]:
    async def look(desk: Desk) -> list[str]:
        from perdure.storage.records import JobFilter, Page  # noqa: PLC0415 - for those who press Tab

        page = await desk.jobs(JobFilter(), Page(_JOBS_SUGGESTED))
        return [str(getattr(job, field)) for job in page.jobs]

    return look


async def _groups(desk: Desk) -> list[str]:
    return [group.fingerprint for group in (await desk.failure_groups()).groups]


async def _bulks(desk: Desk) -> list[str]:
    return [bulk.id for bulk in (await desk.bulks()).bulks]


async def _schedules(desk: Desk) -> list[str]:
    return [view.name for view in await desk.calendar.schedules()]


async def _workers(desk: Desk) -> list[str]:
    return [worker.name for worker in await desk.workers() if worker.dead_at is None]


async def _pauses(desk: Desk) -> list[str]:
    return [pause.id for pause in await desk.holds.pauses()]


async def _breakers(desk: Desk) -> list[str]:
    return [view.name for view in await desk.holds.breakers()]


async def _budgets(desk: Desk) -> list[str]:
    return [each.name for each in await desk.holds.budgets()]


async def _webhooks(desk: Desk) -> list[str]:
    return [view.webhook.name for view in await desk.webhooks.webhooks()]


async def _rules(desk: Desk) -> list[str]:
    return [view.rule.name for view in await desk.alerts.rules()]


async def _channels(desk: Desk) -> list[str]:
    return [view.name for view in await desk.alerts.channels()]


async def _tokens(desk: Desk) -> list[str]:
    return [token.name for token in await desk.tokens() if token.revoked_at is None]


async def _questions(desk: Desk) -> list[str]:
    from perdure.storage.records import JobFilter  # noqa: PLC0415 - for those who press Tab

    return [asking.name for asking in await desk.approvals(JobFilter())]


async def _asking(desk: Desk) -> list[str]:
    from perdure.storage.records import JobFilter  # noqa: PLC0415 - for those who press Tab

    return [asking.job.id for asking in await desk.approvals(JobFilter())]


complete_kind = _completion(_of_jobs("kind"))
complete_queue = _completion(_of_jobs("queue"))
complete_id = _completion(_of_jobs("id"), in_order=True)  # newest first
complete_group = _completion(_groups, in_order=True)  # last failure first
complete_bulk = _completion(_bulks, in_order=True)
complete_pause = _completion(_pauses, in_order=True)
complete_asking = _completion(_asking, in_order=True)
complete_question = _completion(_questions)
complete_schedule = _completion(_schedules)
complete_worker = _completion(_workers)
complete_breaker = _completion(_breakers)
complete_budget = _completion(_budgets)
complete_webhook = _completion(_webhooks)
complete_rule = _completion(_rules)
complete_channel = _completion(_channels)
complete_token = _completion(_tokens)
