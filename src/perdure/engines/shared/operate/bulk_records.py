"""Converts bulk commands between rows and the records of the port; writes their notes for the audit trail."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from perdure.domain.operate.audit import Note
from perdure.domain.plain_records import plain
from perdure.storage.operate.bulk import BulkParams, BulkProgress, BulkSample, BulkState, BulkView, NewBulk, read_filter


class Outcome(Struct, frozen=True):
    """The skipped jobs, as stored."""

    reasons: dict[str, int] = {}
    samples: tuple[BulkSample, ...] = ()


NOTHING_YET: Final = msgspec.json.encode(Outcome()).decode()
_outcome: Final = msgspec.json.Decoder(Outcome)
_params: Final = msgspec.json.Decoder(BulkParams)


def new_columns(new: NewBulk) -> dict[str, Any]:
    """A new bulk command as values to bind."""
    return {
        "id": new.id,
        "action": new.action,
        "filter": msgspec.json.encode(new.filter).decode(),
        "params": msgspec.json.encode(new.params).decode(),
        "jobs": new.jobs,
        "capped": new.capped,
        "cursor": new.cursor,
        "outcome": NOTHING_YET,
    }


def progress_columns(progress: BulkProgress) -> dict[str, Any]:
    """Progress as values to bind."""
    return {
        "cursor": progress.cursor,
        "state": progress.state.value,
        "seen": progress.seen,
        "done": progress.done,
        "skipped": progress.skipped,
        "outcome": msgspec.json.encode(Outcome(progress.reasons, progress.samples)).decode(),
        "error": progress.error,
    }


def bulk_view(row: dict[str, Any]) -> BulkView:
    """A bulk command from its columns, whose times are read already."""
    outcome = _outcome.decode(row.pop("outcome"))
    return BulkView(
        **row
        | {
            "filter": read_filter(row["filter"]),
            "params": _params.decode(row["params"]),
            "state": BulkState(row["state"]),
            "capped": bool(row["capped"]),
            "reasons": outcome.reasons,
            "samples": outcome.samples,
        }
    )


COLUMNS: Final = (
    *("id", "action", "filter", "params", "actor", "why", "source", "state", "jobs", "capped", "seen", "done"),
    *("skipped", "created_at", "changed_at", "finished_at", "error", "outcome"),
)


def started(new: NewBulk) -> Note:
    """A bulk command was started."""
    given = {name: value for name, value in plain(new.filter).items() if value not in (None, [])}
    params = {name: value for name, value in plain(new.params).items() if value is not None}
    after = {"after": {"state": BulkState.RUNNING.value}}
    details = {"filter": given, **({"params": params} if params else {}), **after}
    return Note(action=f"bulk.{new.action}", jobs=new.jobs, details=details)


def ended(view: BulkView) -> Note:
    """A bulk command ended or was stopped; how many jobs it changed."""
    after = {"state": view.state.value, "done": view.done, "skipped": view.skipped}
    error = {} if view.error is None else {"error": view.error}
    action = "bulk.stop" if view.state is BulkState.STOPPED else "bulk.end"
    details = {"bulk": view.action, "before": {"state": BulkState.RUNNING.value}, "after": after | error}
    return Note(action=action, jobs=view.done, details=details)
