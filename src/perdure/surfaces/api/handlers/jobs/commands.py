"""Commands on jobs: on one by its id or ref, on several, or on all that match a filter."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from perdure.domain.jobs.ids import as_job_id, is_job_id
from perdure.domain.jobs.job import JobView
from perdure.errors import ArgumentError, NotFoundError
from perdure.operate.commands.actions import CANCEL, DELETE, PURGE, REQUEUE, RUN_NOW, Action, mark_as, reschedule_to
from perdure.operate.records import Changed
from perdure.surfaces.api.problems import HttpError
from perdure.surfaces.api.revisions import check_version, job_etag
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Ids, Instant


class Command(StrEnum):
    """The commands on jobs."""

    REQUEUE = "requeue"
    CANCEL = "cancel"
    RUN_NOW = "run_now"
    RESCHEDULE = "reschedule"
    MARK = "mark"
    PURGE = "purge"
    DELETE = "delete"


class Because(Given, frozen=True, kw_only=True):
    """The reason, for the audit trail."""

    why: str | None = None


class OneVersion(Because, frozen=True, kw_only=True):
    """The reason, and as `revision` the version to change, as an alternative to If-Match."""

    revision: str | None = None


class NewTime(OneVersion, frozen=True, kw_only=True):
    """When to run."""

    run_at: Instant


class NewMark(OneVersion, frozen=True, kw_only=True):
    """A word by which lists can filter; null removes it."""

    mark: str | None


class ManyJobs(Given, frozen=True, kw_only=True):
    """Several jobs by id or ref. `run_at` is for reschedule, `mark` for mark: null removes it.

    `dry_run` changes nothing.
    """

    ids: Ids
    run_at: Instant | None = None
    mark: str | UnsetType | None = UNSET
    dry_run: bool = False
    why: str | None = None


class Done(Struct, frozen=True, kw_only=True):
    """What a command did, and the job afterwards; null if it no longer exists."""

    changed: Changed
    job: JobView | None


async def requeue_job(call: Call[None, OneVersion]) -> Done:
    """Requeue a finished job, with all attempts available again."""
    return await _act(call, REQUEUE)


async def cancel_job(call: Call[None, OneVersion]) -> Done:
    """Cancel a job; a running one is asked to stop."""
    return await _act(call, CANCEL)


async def run_job_now(call: Call[None, OneVersion]) -> Done:
    """Run a parked job without waiting for its time."""
    return await _act(call, RUN_NOW)


async def reschedule_job(call: Call[None, NewTime]) -> Done:
    """Change when a parked job runs."""
    return await _act(call, reschedule_to(call.body.run_at))


async def mark_job(call: Call[None, NewMark]) -> Done:
    """Set a mark on a job, or remove it."""
    return await _act(call, mark_as(call.body.mark))


async def purge_job(call: Call[None, OneVersion]) -> Done:
    """Delete a finished job and its history permanently."""
    return await _act(call, PURGE)


async def delete_job(call: Call[None, OneVersion]) -> Done:
    """Delete a job in any state and its history; a running attempt loses its claim."""
    return await _act(call, DELETE)


async def command_jobs(call: Call[None, ManyJobs]) -> Changed:
    """Run a command on several jobs by id or ref.

    `command` is requeue, cancel, run_now, reschedule, mark, purge or delete. The response reports the outcome for each
    job; 404 or 409 if no job was changed. For jobs that match a filter, use bulk commands.
    """
    body = call.body
    action = _action(_command(call.path["command"]), body)
    if body.dry_run:
        return await call.desk.preview(action, body.ids)
    return await call.desk.act(action, body.ids, why=body.why)


async def _act(call: Call[None, OneVersion] | Call[None, NewTime] | Call[None, NewMark], action: Action) -> Done:
    name = call.path["id"]
    job_id = as_job_id(name) if is_job_id(name) else (await call.desk.job_by_ref(name)).id
    async with call.turns.of("job", job_id):  # the same lock for callers who use the ref
        job = (await call.desk.job(job_id, lines=0)).job
        check_version(call.request, call.body.revision, job_etag(job), f"job {job_id}")
        changed = await call.desk.act(action, job_id, why=call.body.why)
        try:
            after = (await call.desk.job(job_id, lines=0)).job
        except NotFoundError:
            return Done(changed=changed, job=None)
    call.headers["etag"] = job_etag(after)
    return Done(changed=changed, job=after)


def _command(name: str) -> Command:
    try:
        return Command(name)
    except ValueError:
        raise HttpError(
            404, "no-such-command", f"there is no command {name!r:.80}; there is {_listed(Command)}"
        ) from None


def _action(command: Command, body: ManyJobs) -> Action:
    mark = mark_for(command, body.mark, body.run_at)
    if command is Command.MARK:
        return mark_as(mark)
    if body.run_at is not None:
        return reschedule_to(body.run_at)
    return _PLAIN[command]


def mark_for(command: Command, mark: str | UnsetType | None, run_at: datetime | None) -> str | None:
    """The mark of a command; refuses a mark or time that the command does not take, and a missing one."""
    if run_at is not None and command is not Command.RESCHEDULE:
        raise ArgumentError("run_at", f"is for reschedule, not for {command}")
    if run_at is None and command is Command.RESCHEDULE:
        raise ArgumentError("run_at", "is missing: give the time at which the jobs should run")
    if mark is UNSET and command is Command.MARK:
        raise ArgumentError("mark", "is missing: give a word, or null to remove the mark")
    if mark not in (None, UNSET) and command is not Command.MARK:
        raise ArgumentError("mark", f"is for mark, not for {command}")
    return None if isinstance(mark, UnsetType) else mark


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


_PLAIN = {
    Command.REQUEUE: REQUEUE,
    Command.CANCEL: CANCEL,
    Command.RUN_NOW: RUN_NOW,
    Command.PURGE: PURGE,
    Command.DELETE: DELETE,
}
