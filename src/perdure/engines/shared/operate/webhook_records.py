"""Webhooks and events as both engines store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from perdure.domain.operate.audit import Note
from perdure.domain.operate.event_log import Cursor, EventLogState
from perdure.domain.operate.webhook import Webhook, WebhookView
from perdure.errors import ConflictError, EventsGone
from perdure.policy.outbound.target import shown_url

_READER: Final = msgspec.json.Decoder(Webhook)


def webhook_text(webhook: Webhook) -> str:
    """The definition as it is stored."""
    return msgspec.json.encode(webhook).decode()


def read_webhook(text: str) -> Webhook:
    """The definition of a text."""
    return _READER.decode(text)


def check_reach(state: EventLogState, after: Cursor, newest: Cursor) -> None:
    """Refuse a cursor whose next events were deleted, or that is of another database."""
    if not state.is_on:
        raise ConflictError("events are not logged: switch the log on with `perdure events on`")
    if after < state.oldest:
        raise EventsGone(
            f"the events after {after} were deleted, the oldest cursor is {state.oldest}: read the current state of"
            " your jobs, then follow from there"
        )
    if after > newest:
        raise EventsGone(f"{after} is not a cursor of this database, whose newest is {newest}: was a backup restored?")


def log_switched(before: EventLogState, after: EventLogState) -> Note:
    """The log was switched on or off, or its retention was changed."""
    action = "event_log.on" if after.is_on else "event_log.off"
    return Note(action=action, details={"before": _kept(before), "after": _kept(after)})


def webhook_saved(before: WebhookView | None, after: Webhook, *, secret: bool) -> Note:
    """A webhook was made or changed. `secret`: it has a new one, which is not recorded."""
    details: dict[str, Any] = {"webhook": after.name}
    if before is not None:
        details["before"] = _facts(before.webhook)
    details["after"] = _facts(after) | ({"secret": "new"} if secret else {})
    return Note(action="webhook.save", details=details)


def webhook_paused(name: str, *, paused: bool) -> Note:
    """A webhook was paused or resumed."""
    action = "webhook.pause" if paused else "webhook.resume"
    return Note(action=action, details={"webhook": name, "after": {"paused": paused}})


def webhook_deleted(webhook: Webhook) -> Note:
    """A webhook was deleted."""
    return Note(action="webhook.delete", details={"webhook": webhook.name, "before": _facts(webhook)})


def _facts(webhook: Webhook) -> dict[str, Any]:
    facts: Mapping[str, Any] = msgspec.to_builtins(webhook)
    shown = {name: value for name, value in facts.items() if value and name not in {"name", "url"}}
    return {"url": shown_url(webhook.url), **shown}


def _kept(state: EventLogState) -> dict[str, Any]:
    return {"keep": None if state.keep is None else state.keep.total_seconds()}
