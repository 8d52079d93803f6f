"""What the audit trail records of changes, the same on both engines: the state before and after."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from perdure.domain.gate import BreakerView, Pause
from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.domain.operate.audit import Note
from perdure.domain.plain_records import plain, unpacked
from perdure.domain.schedule import ScheduleView
from perdure.engines.shared.definitions import definition_text
from perdure.policy.secrets.redaction import redact_document
from perdure.storage.operate.tokens import NewToken

_BREAKER: Final = ("state", "until", "note")
_PAUSE: Final = ("queue", "kind", "args", "until")
_TOKEN: Final = ("name", "scope", "expires_at")
_DOCUMENTS: Final = ("args", "meta")  # of a schedule: JSON texts
_STANDING: Final = ("paused_at", "paused_until", "next_at")


def schedule_changed(action: str, name: str, before: ScheduleView | None, after: ScheduleView | None) -> Note:
    """A change of a schedule: its definition and its pause, as far as they differ."""
    was, now = _schedule(before), _schedule(after)
    if was is not None and now is not None:
        same = {field for field in was if was[field] == now.get(field)}
        was, now = ({field: value for field, value in one.items() if field not in same} for one in (was, now))
    return Note(action=f"schedule.{action}", details={"schedule": name, **_changes(was, now)})


def breaker_set(before: BreakerView | None, after: BreakerView) -> Note:
    """A breaker was opened or closed by hand."""
    was = None if before is None else _some(before, _BREAKER)
    return Note(action="breaker", details={"breaker": after.name, **_changes(was, _some(after, _BREAKER))})


def paused(pause: Pause) -> Note:
    """A queue or a kind was paused."""
    return Note(action="pause", details={"pause": pause.id, **_changes(None, _some(pause, _PAUSE))})


def resumed(pause: Pause) -> Note:
    """A pause was ended."""
    return Note(action="resume", details={"pause": pause.id, **_changes(_some(pause, _PAUSE), None)})


def enqueued(job: NewJob, receipt: Receipt) -> Note | None:
    """A job was made by hand, or took the place of another; None: it was there already."""
    if receipt.intake is Intake.EXISTING:
        return None
    after = {"kind": job.kind, "queue": job.queue, "intake": receipt.intake.value}
    return Note(action="enqueue", job_id=receipt.job_id, jobs=1, details={"after": after})


def token_created(token: NewToken) -> Note:
    """An access token was created."""
    return Note(action="token.create", details={"token": token.id, **_changes(None, _some(token, _TOKEN))})


def token_revoked(token_id: str, name: str) -> Note:
    """An access token was revoked."""
    return Note(action="token.revoke", details={"token": token_id, **_changes({"name": name}, None)})


def encoded_details(note: Note) -> str:
    """The details as they are kept."""
    return msgspec.json.encode(note.details).decode()


def _schedule(view: ScheduleView | None) -> dict[str, Any] | None:
    if view is None:
        return None
    definition: dict[str, Any] = unpacked(definition_text(view.schedule))
    definition.pop("name", None)
    shown = {name: redact_document(definition[name]) for name in _DOCUMENTS if definition.get(name)}
    return definition | shown | _some(view, _STANDING)


def _some(thing: object, fields: tuple[str, ...]) -> dict[str, Any]:
    """Those of these fields that are set, as JSON types."""
    return {field: plain(value) for field in fields if (value := getattr(thing, field)) is not None}


def _changes(before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    return {name: facts for name, facts in (("before", before), ("after", after)) if facts is not None}
