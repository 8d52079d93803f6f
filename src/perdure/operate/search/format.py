"""From a filter back to the search that means it: for URLs, and for commands to copy."""

from __future__ import annotations

from datetime import UTC, datetime

from perdure.domain.operate.condition import Condition
from perdure.operate.search.words import quoted
from perdure.storage.records import JobFilter


def format_search(which: JobFilter) -> str:
    """The search that `parse_search` reads as this filter."""
    words = [f"id:{job_id}" for job_id in which.ids or ()]
    if which.states is not None:
        words.append(f"state:{','.join(sorted(which.states))}")
    for key, value in (
        ("kind", which.kind),
        ("queue", which.queue),
        ("tag", which.tag),
        ("ref", which.ref),
        ("group", which.fingerprint),
        ("mark", which.mark),
    ):
        if value is not None:
            words.append(f"{key}:{quoted(value)}")
    if which.marked is not None:
        words.append("is:marked" if which.marked else "is:unmarked")
    if which.error is not None:
        words.append(f"error~{quoted(which.error)}")
    words += [_condition(condition) for condition in which.where]
    for key, moment in (
        ("since", which.created_after),
        ("before", which.created_before),
        ("finished-since", which.finished_after),
        ("finished-before", which.finished_before),
    ):
        if moment is not None:
            words.append(f"{key}:{_time(moment)}")
    return " ".join(words)


def _condition(condition: Condition) -> str:
    path = ".".join((condition.field, *(quoted(step, is_step=True) for step in condition.path)))
    return f"has:{path}" if condition.op == "exists" else f"{path}{condition.op}{quoted(condition.value or '')}"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
