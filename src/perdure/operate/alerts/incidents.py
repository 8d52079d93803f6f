"""The incidents of an evaluation: opened by its notices, and resolved as soon as they are over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert, Notice, NoticeSort
from perdure.domain.alerts.channel import Channel
from perdure.domain.alerts.rule import AlertRule, AlertSeverity
from perdure.domain.jobs.job import NewJob
from perdure.operate.alerts.addresses import INCIDENT_TOOLS
from perdure.operate.alerts.sending import notice_to
from perdure.policy.alerts.incidents import INCIDENTS_PER_NOTICE, Incident, Over, end_incidents, open_incidents
from perdure.policy.alerts.wording import Draft, one_line

_WORDS: Final = "All causes of this incident are over."


class Incidents:
    """The open incidents, in the channels of tools that keep some."""

    def __init__(self, known: Mapping[str, Incident], channels: Iterable[Channel]) -> None:
        self.open: dict[str, Incident] = dict(known)
        there = list(channels)
        self._channels = {channel.name for channel in there}
        self._keepers = {channel.name for channel in there if may_keep_incidents(channel)}

    def begin(self, notice: Notice, rule: AlertRule, raised: Iterable[Alert]) -> Notice:
        """The notice, with the incidents that it opens or repeats."""
        channels = tuple(one.channel for one in notice.deliveries if one.channel in self._keepers)
        if not channels:
            return notice
        self.open, opens = open_incidents(self.open, f"perdure-{notice.id}", rule.name, raised, channels)
        return replace(notice, opens=opens)

    def end(
        self, alerts: Mapping[str, Alert], rules: Iterable[AlertRule], notices: Sequence[Notice], now: datetime
    ) -> tuple[list[Notice], list[NewJob]]:
        """The notices of this evaluation after it has resolved what is over, and the jobs of those that it added.

        An end goes out with a notice of the same rule if there is one, else in a notice of its own, to tools only.
        """
        to = {rule.name: rule.to for rule in rules}
        self.open, over = end_incidents(self.open, alerts, to, self._channels)
        after, jobs = list(notices), list[NewJob]()
        for rule, channels, keys in _together(over):
            place = next((place for place, one in enumerate(after) if _carries(one, rule, channels)), None)
            if place is not None:
                after[place] = replace(after[place], resolves=keys)
                continue
            words = Draft(
                sort=NoticeSort.RECOVERY,
                severity=AlertSeverity.INFO,
                title=one_line(f"Over: {len(keys)} {'incident' if len(keys) == 1 else 'incidents'} of rule {rule}"),
                body=_WORDS,
                path="/alerts",
            )
            notice, more = notice_to(words, channels, now, rule)
            after.append(replace(notice, resolves=keys))
            jobs += more
        return after, jobs


def may_keep_incidents(channel: Channel) -> bool:
    """Whether a channel leads to a tool that keeps incidents; only workers know that of some."""
    return channel.scheme is None or channel.scheme in INCIDENT_TOOLS


def _carries(notice: Notice, rule: str, channels: tuple[str, ...]) -> bool:
    return notice.rule == rule and not notice.resolves and {*channels} <= {one.channel for one in notice.deliveries}


def _together(over: Iterable[Over]) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Rule, channels and keys of incidents that are resolved together."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in over:
        groups.setdefault((one.rule, one.channels), []).append(one.key)
    for (rule, channels), keys in groups.items():
        for start in range(0, len(keys), INCIDENTS_PER_NOTICE):
            yield rule, channels, tuple(keys[start : start + INCIDENTS_PER_NOTICE])
