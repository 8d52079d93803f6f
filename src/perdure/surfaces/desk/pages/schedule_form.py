"""The form of a schedule: its values, and the schedule that they define."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from perdure.app.schedules import checked_schedule
from perdure.domain.duration import format_duration
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob
from perdure.domain.schedule import Schedule, ScheduleView
from perdure.errors import ArgumentError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name
from perdure.surfaces.desk.pages.forms.written import command_line, read_arguments, read_priority
from perdure.surfaces.desk.visit import Visit

_EMPTY: Final = {
    "name": "",
    "kind": "",
    "expression": "",
    "tz": "UTC",
    "args": "{}",
    "queue": "",
    "priority": "",
    "missed": "skip",
    "overlap": "skip",
    "within": "",
    "jitter": "",
}
_EVERY: Final = "@every"
_EXAMPLE: Final = "0 2 * * *"
_UNLESS_USUAL: Final = ("tz", "args", "queue", "priority", "missed", "overlap", "within", "jitter")


def written_fields(visit: Visit, view: ScheduleView | None) -> dict[str, str]:
    """The form's values: as submitted, else from the existing schedule, else the defaults."""
    if visit.form:
        return {name: visit.field(name) for name in _EMPTY}
    if view is None:
        return dict(_EMPTY)
    made = view.schedule
    return {
        "name": made.name,
        "kind": made.kind,
        "expression": made.expression,
        "tz": made.tz,
        "args": made.args,
        "queue": made.queue,
        "priority": str(made.priority),
        "missed": made.missed,
        "overlap": made.overlap,
        "within": format_duration(made.within),
        "jitter": format_duration(made.jitter) if made.jitter else "",
    }


def read_schedule(visit: Visit) -> Schedule:
    """The schedule in the form; ArgumentError names the invalid field.

    Kind and arguments are checked if the app is loaded.
    """
    given = {name: visit.field(name).strip() for name in _EMPTY}
    for name, hint in (
        ("name", "such as nightly-report"),
        ("kind", "of its jobs"),
        ("expression", "such as 0 2 * * *"),
    ):
        if not given[name]:
            raise ArgumentError(name, f"is missing: write one, {hint}")
    args = read_arguments(given["args"] or "{}")
    queue, priority = _checked_by_app(visit, given["kind"], args)
    job = NewJob(
        id=new_job_id(),
        kind=checked_name("kind", given["kind"]),
        args=encode(args),
        queue=checked_name("queue", given["queue"] or queue),
        priority=read_priority(given["priority"]) if given["priority"] else priority,
    )
    return checked_schedule(
        given["name"],
        job,
        given["expression"],
        tz=given["tz"] or "UTC",
        missed=given["missed"] or "skip",
        within=given["within"] or None,
        overlap=given["overlap"] or "skip",
        jitter=given["jitter"] or 0,
    )


def schedule_command(visit: Visit, fields: Mapping[str, str]) -> str:
    """The command for a terminal that makes the schedule of this form; default values are left out."""
    given = {name: value.strip() for name, value in fields.items()}
    known = (visit.frame.kinds or {}).get(given["kind"])
    if known is not None:  # a terminal does not know the kind's declaration in the app's code
        given["queue"] = given["queue"] or known.queue
        given["priority"] = given["priority"] or str(known.priority)
    expression = given["expression"] or _EXAMPLE
    every = expression.removeprefix(_EVERY).strip() if expression.startswith(_EVERY) else ""
    unusual = {name: given[name] if given[name] != _EMPTY[name] else "" for name in _UNLESS_USUAL}
    return command_line(
        ["schedules", "create", given["name"] or "NAME"],
        {
            "kind": given["kind"] or "KIND",
            "every": every,
            "cron": "" if every else expression,
            **unusual,
            "why": visit.field("why").strip(),
        },
    )


def _checked_by_app(visit: Visit, kind: str, args: dict[str, Any]) -> tuple[str, int]:
    """Queue and priority of the kind; refuses an unknown kind and arguments that do not fit."""
    if visit.frame.kinds is None:
        return DEFAULT_QUEUE, DEFAULT_PRIORITY
    known = visit.frame.kinds.get(kind)
    if known is None:
        raise ArgumentError("kind", f"{kind!r:.60} is not declared by this app")
    known.signature.values(encode(known.signature.bind((), args)))
    return known.queue, known.priority
