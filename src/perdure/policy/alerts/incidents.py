"""Incidents in tools such as PagerDuty: the alerts that each stands for, and when it is over.

A notice opens one incident for all lasting alerts that it reports anew, so that many causes at once open one incident.
The incident is over when the last of these alerts has ended; its end does not wait for a notice to people. Alerts that
pass, such as deaths, have no end: a person closes their incidents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert, Opening

INCIDENTS_PER_NOTICE: Final = 20
"""The most incidents that one notice opens, repeats or resolves: each is a request to the tool."""
INCIDENTS_KEPT: Final = 2_000


class Incident(Struct, frozen=True, kw_only=True):
    """The alerts of one incident, by their ids, and the channels in which it is open.

    `ends`: its alerts last, so that it is resolved when all of them have ended.
    """

    rule: str
    alerts: tuple[str, ...]
    channels: tuple[str, ...]
    ends: bool


class Over(Struct, frozen=True):
    """An incident to resolve in these channels."""

    key: str
    rule: str
    channels: tuple[str, ...]


def open_incidents(
    incidents: Mapping[str, Incident], key: str, rule: str, raised: Iterable[Alert], channels: tuple[str, ...]
) -> tuple[dict[str, Incident], tuple[Opening, ...]]:
    """The incidents after a notice that raises these alerts, and those that it opens or repeats.

    `key` names the incident of alerts that have none. An alert that has ended already opens none.
    """
    going_on = [alert for alert in raised if alert.is_open or alert.passes]
    ids = {alert.id for alert in going_on}
    known = [name for name, one in incidents.items() if one.rule == rule and ids.intersection(one.alerts)]
    covered = {alert for name in known for alert in incidents[name].alerts}
    after = dict(incidents)
    for name in known:
        there = after[name].channels
        after[name] = replace(after[name], channels=(*there, *(one for one in channels if one not in there)))
    fresh = [alert for alert in going_on if alert.id not in covered]
    if fresh:
        ends = any(not alert.passes for alert in fresh)
        after[key] = Incident(rule=rule, alerts=tuple(alert.id for alert in fresh), channels=channels, ends=ends)
    names = [*([key] if fresh else []), *reversed(known)][:INCIDENTS_PER_NOTICE]
    return after, tuple(Opening(key=name, ends=after[name].ends) for name in names)


def end_incidents(
    incidents: Mapping[str, Incident],
    alerts: Mapping[str, Alert],
    rules: Mapping[str, Collection[str]],
    channels: Collection[str],
) -> tuple[dict[str, Incident], list[Over]]:
    """The incidents that go on, and those to resolve.

    `alerts` are the live ones by id, `rules` the channels of each rule, `channels` those that exist. An incident ends
    early in a channel that its rule no longer uses. In a channel that is gone it waits until the channel is back.
    """
    after: dict[str, Incident] = {}
    over: list[Over] = []
    for key, one in incidents.items():
        live = [alerts[alert] for alert in one.alerts if alert in alerts]
        if not one.ends:
            if live:
                after[key] = one
            continue
        to = rules.get(one.rule, one.channels) if any(alert.is_open for alert in live) else ()
        done = tuple(name for name in one.channels if name not in to and name in channels)
        if done:
            over.append(Over(key, one.rule, done))
        left = tuple(name for name in one.channels if name not in done)
        if left:
            after[key] = replace(one, channels=left)
    return dict(list(after.items())[-INCIDENTS_KEPT:]), over
