"""Emitted events, as stored."""

from __future__ import annotations

from typing import Any

from perdure.domain.flows.approval import refuse_answer
from perdure.errors import PayloadError
from perdure.flows.journal import checked_name
from perdure.kinds.encoding import encode


def event_payload(event: str, payload: Any, limit: int) -> str | None:
    """The JSON of an event's payload; an invalid name or payload is refused."""
    checked_name("event", event)
    refuse_answer(event)
    if payload is None:
        return None
    try:
        text = encode(payload)
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise PayloadError(f"payload of event {event}", f"cannot be stored as JSON: {error}") from error
    if (size := len(text.encode())) > limit:
        raise PayloadError(
            f"payload of event {event}",
            f"has {size} bytes as JSON, {limit} are allowed; store the data elsewhere, emit its key",
        )
    return text
