"""Converts alerts between rows and the records of the port; writes their notes for the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from perdure.domain.alerts.alert import Alert, Delivery, DeliveryState, Notice
from perdure.domain.alerts.channel import ENV, Channel, ChannelRecord
from perdure.domain.alerts.rule import AlertRule, RuleView, Source
from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import Note
from perdure.domain.plain_records import plain
from perdure.errors import ConflictError
from perdure.storage.operate.alerts import BudgetLimits, RecentFailure

Record = TypeVar("Record")
NOTICES_PER_CALL: Final = 500
FORGOTTEN_PER_CALL: Final = 500
_rule: Final = msgspec.json.Decoder(AlertRule)
_channel: Final = msgspec.json.Decoder(Channel)
_alert: Final = msgspec.json.Decoder(Alert)
_notice: Final = msgspec.json.Decoder(Notice)
_limits: Final = msgspec.json.Decoder(tuple[tuple[timedelta, float], ...])


def text_of(record: object) -> str:
    """A record as stored text."""
    return msgspec.json.encode(record).decode()


def notice_text(notice: Notice) -> str:
    """A notice as stored text; its deliveries have their own rows."""
    return text_of(msgspec.structs.replace(notice, deliveries=()))


def rule_view(row: Sequence[Any]) -> RuleView:
    """A rule from its columns, whose times are read already."""
    rule, source, created_at, changed_at, declared_at, paused_at, paused_until, paused_by = row
    return RuleView(
        rule=_rule.decode(rule),
        source=Source(source),
        created_at=created_at,
        changed_at=changed_at,
        declared_at=declared_at,
        paused_at=paused_at,
        paused_until=paused_until,
        paused_by=paused_by,
    )


def readable(rows: Iterable[Sequence[Any]], read: Callable[[Sequence[Any]], Record]) -> list[Record]:
    """The readable ones of these rows; rows of a newer release are left to its workers."""
    found: list[Record] = []
    for row in rows:
        with suppress(msgspec.ValidationError):
            found.append(read(row))
    return found


def channel_record(row: Sequence[Any]) -> ChannelRecord:
    """A channel from its columns, whose times are read already."""
    channel, source, created_at, changed_at, declared_at, sent_at, failed_at, error, failures = row
    return ChannelRecord(
        channel=_channel.decode(channel),
        source=Source(source),
        created_at=created_at,
        changed_at=changed_at,
        declared_at=declared_at,
        sent_at=sent_at,
        failed_at=failed_at,
        error=error,
        failures=failures,
    )


def delivery(row: Sequence[Any]) -> tuple[str, Delivery]:
    """A delivery from its columns, with the id of its notice."""
    notice_id, channel, job_id, state, changed_at, error = row
    made = Delivery(
        channel=channel, job_id=JobId(job_id), state=DeliveryState(state), changed_at=changed_at, error=error
    )
    return notice_id, made


def alert_of(text: str) -> Alert:
    """An alert from its stored text."""
    return _alert.decode(text)


def notices_of(texts: Iterable[str], deliveries: Iterable[tuple[str, Delivery]]) -> list[Notice]:
    """Notices from their stored text, with their deliveries."""
    found: dict[str, list[Delivery]] = {}
    for notice_id, one in deliveries:
        found.setdefault(notice_id, []).append(one)
    kept = [_notice.decode(text) for text in texts]
    return [msgspec.structs.replace(notice, deliveries=tuple(found.get(notice.id, ()))) for notice in kept]


def budget_limits(rows: Iterable[Sequence[Any]]) -> list[BudgetLimits]:
    """Budgets as they were declared."""
    return [BudgetLimits(name, _limits.decode(limits)) for name, limits in rows]


def said_times(rows: Iterable[tuple[str, datetime]]) -> dict[str, tuple[datetime, ...]]:
    """The times of notices, by rule."""
    said: dict[str, tuple[datetime, ...]] = {}
    for rule, at in rows:
        said[rule] = (*said.get(rule, ()), at)
    return said


def recent_failures(rows: Iterable[Sequence[Any]]) -> list[RecentFailure]:
    """Groups with their deaths by hour, from a row for each group and hour whose times are read already."""
    found: dict[str, RecentFailure] = {}
    for fingerprint, kind, error_type, message, first_at, last_at, hour, deaths in rows:
        if fingerprint not in found:
            found[fingerprint] = RecentFailure(
                fingerprint=fingerprint,
                kind=kind,
                error_type=error_type,
                message=message,
                first_at=first_at,
                last_at=last_at,
                deaths={},
            )
        found[fingerprint].deaths[hour] = deaths
    return list(found.values())


def refuse_code(what: str, name: str, source: Source | None) -> None:
    """Refuse to change at run time what code declares."""
    if source is Source.CODE:
        raise ConflictError(f"{what} {name!r} is declared in code: change it there, or give this one another name")


def rule_changed(action: str, name: str, before: RuleView | None, after: RuleView | None) -> Note:
    """A change of a rule: the fields that differ, and its pause."""
    return _changed(f"alert_rule.{action}", "rule", name, _rule_facts(before), _rule_facts(after))


def channel_changed(action: str, name: str, before: ChannelRecord | None, after: ChannelRecord | None) -> Note:
    """A change of a channel, without the secret parts of its address."""
    return _changed(f"alert_channel.{action}", "channel", name, _channel_facts(before), _channel_facts(after))


def tested(notice: Notice) -> Note:
    """A test was sent."""
    channels = [one.channel for one in notice.deliveries]
    return Note(action="alert.test", jobs=len(channels), details={"notice": notice.id, "channels": channels})


def _rule_facts(view: RuleView | None) -> dict[str, Any] | None:
    if view is None:
        return None
    facts: dict[str, Any] = plain(view.rule)
    return facts | {"paused_at": plain(view.paused_at), "paused_until": plain(view.paused_until)}


def _channel_facts(record: ChannelRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    channel = record.channel
    return {
        "scheme": channel.scheme,
        "address": channel.address if channel.address.startswith(ENV) else "stored",
        "signed": channel.secret is not None,
        "allow_private": channel.allow_private,
    }


def _changed(action: str, what: str, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Note:
    if before is not None and after is not None:
        same = {field for field in before if before[field] == after.get(field)}
        before, after = ({field: one[field] for field in one if field not in same} for one in (before, after))
    sides = {side: facts for side, facts in (("before", before), ("after", after)) if facts is not None}
    return Note(action=action, details={what: name, **sides})
