"""Channels that do not work, or are gone: reported through another channel, once.

Deliveries never raise alerts of rules, and this notice goes only to a channel that works: so an alert about alerts
cannot loop, and at most one notice goes out for each channel that breaks and one when it works again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from shlex import quote as shell_word
from typing import Final

from msgspec import Struct

from perdure.domain.alerts.alert import NoticeSort
from perdure.domain.alerts.channel import ChannelRecord
from perdure.domain.alerts.rule import AlertRule, AlertSeverity
from perdure.policy.alerts.wording import Draft, one_line

FAILURES_TO_BREAK: Final = 3
"""A channel is broken after this many failed attempts in a row."""


class Broken(Struct, frozen=True):
    """A channel that does not work, and the channel through which that was reported; None: none yet."""

    since: datetime
    told: str | None = None


class Report(Struct, frozen=True):
    """The broken channels after a look, and the notices about them, each with the channel that it goes to."""

    broken: dict[str, Broken]
    notices: tuple[tuple[Draft, str], ...]


def report_channels(
    before: Mapping[str, Broken],
    channels: Sequence[ChannelRecord],
    dead: Collection[str],
    rules: Iterable[AlertRule],
    now: datetime,
) -> Report:
    """Find broken channels, and draft the notices about them. `dead` are channels with a dead delivery."""
    lists = [rule.to for rule in rules]
    records = {record.channel.name: record for record in channels}
    is_broken = {name for name, record in records.items() if _is_broken(record, before.get(name), name in dead)}
    is_broken |= {name for to in lists for name in to if name not in records}
    after: dict[str, Broken] = {}
    notices: list[tuple[Draft, str]] = []
    for name in sorted(is_broken):
        known = before.get(name) or Broken(now)
        other = _other(name, lists, [one for one in records if one not in is_broken])
        if known.told is None and other is not None:
            notices.append((_fails(records[name]) if name in records else _gone(name), other))
            known = Broken(known.since, other)
        after[name] = known
    for name, known in before.items():
        if name in records and name not in is_broken and known.told in records and known.told not in is_broken:
            notices.append((_fine(records[name], known.since), known.told))
    return Report(after, tuple(notices))


def _is_broken(record: ChannelRecord, before: Broken | None, has_lost: bool) -> bool:
    if record.failures == 0:
        return False
    return before is not None or has_lost or record.failures >= FAILURES_TO_BREAK


def _other(name: str, lists: Iterable[tuple[str, ...]], working: Sequence[str]) -> str | None:
    """The channel for the report: one of a rule that uses the broken one, or any that works."""
    beside = [other for to in lists if name in to for other in to if other in working]
    return next(iter([*beside, *working]), None)


def _fails(record: ChannelRecord) -> Draft:
    name = record.channel.name
    return Draft(
        sort=NoticeSort.CHANNEL,
        severity=AlertSeverity.CRITICAL,
        title=one_line(f"Alert channel {name} does not work"),
        body=f"{record.failures:,} attempts failed in a row. The last error: {record.error or 'unknown'}\n\n"
        f"Its notices are retried for a while, then kept as dead letters of the queue perdure-alerts.\n"
        f"Look: perdure alerts channels list",
        path="/alerts",
        keys=(name,),
    )


def _gone(name: str) -> Draft:
    return Draft(
        sort=NoticeSort.CHANNEL,
        severity=AlertSeverity.CRITICAL,
        title=one_line(f"Alert channel {name} does not exist any more"),
        body=f"Rules send to {name}, which is not declared by any worker and was not made at run time. Rules without\n"
        f"another channel keep what they find until there is one. Add it, or change the rules:\n"
        f"perdure alerts list",
        path="/alerts",
        keys=(name,),
    )


def _fine(record: ChannelRecord, broken_since: datetime) -> Draft:
    """The end of a report: the channel has worked since, or was only saved or declared again."""
    name = record.channel.name
    has_worked = record.sent_at is not None and record.sent_at >= broken_since
    return _works(name) if has_worked else _is_back(name)


def _is_back(name: str) -> Draft:
    return Draft(
        sort=NoticeSort.CHANNEL,
        severity=AlertSeverity.INFO,
        title=one_line(f"Alert channel {name} is set up again"),
        body="It was saved or declared again, and has sent nothing since.\n"
        f"Try it: perdure alerts test {shell_word(name)}",
        path="/alerts",
        keys=(name,),
    )


def _works(name: str) -> Draft:
    return Draft(
        sort=NoticeSort.CHANNEL,
        severity=AlertSeverity.INFO,
        title=one_line(f"Alert channel {name} works again"),
        body=f"Notices go through {name} again. Those that were given up meanwhile can be requeued:\n"
        "perdure dead list --queue perdure-alerts",
        path="/alerts",
        keys=(name,),
    )
