"""Operators' views and commands for alerts: rules, channels, open alerts, notices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert, Notice, NoticeSort
from perdure.domain.alerts.channel import ChannelView
from perdure.domain.alerts.rule import AlertRule, AlertSeverity, RuleView
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.operate.alerts.addresses import make_channel, shown
from perdure.operate.alerts.memory import read_memory
from perdure.operate.alerts.previews import AlertPreview, preview
from perdure.operate.alerts.sending import notice_to
from perdure.operate.audit_trail import checked_why
from perdure.operate.wording import listed
from perdure.policy.alerts.wording import Draft
from perdure.storage.checking import check_whole
from perdure.storage.operate.alerts import AlertFilter
from perdure.storage.port import Store

ALERTS_PER_PAGE: Final = 500
RULES_LIMIT: Final = 200
CHANNELS_LIMIT: Final = 100


class AlertsSeen(Struct, frozen=True):
    """A page of alerts, the last to open first. `next` is the `before` of the next page; None: the end."""

    alerts: tuple[Alert, ...]
    next: str | None


class NoticesSeen(Struct, frozen=True):
    """A page of notices, newest first. `next` is the `before` of the next page; None: the end."""

    notices: tuple[Notice, ...]
    next: str | None


class Alerts:
    """Rules, channels, alerts and notices of an open store, and commands, recorded under `by`."""

    def __init__(self, store: Store, by: By) -> None:
        self._store = store
        self._by = by

    async def rules(self) -> list[RuleView]:
        """All rules, by name."""
        return await self._store.alert_rules()

    async def rule(self, name: str) -> RuleView:
        """One rule; raises NotFoundError."""
        known = await self._store.alert_rules()
        for view in known:
            if view.rule.name == name:
                return view
        there = listed(repr(view.rule.name) for view in known)
        raise NotFoundError(f"there is no rule {name!r}; {f'there are {there}' if there else 'there is none'}")

    async def save(self, rule: AlertRule, *, why: str | None = None) -> RuleView:
        """Create a rule, or replace one made at run time: `alerts.save(make_rule("x", "job_died", to="ops"))`.

        Raises ConflictError for one declared in code, and NotFoundError if it names a channel that does not exist.
        """
        names = {record.channel.name for record in await self._store.alert_channels()}
        if unknown := [name for name in rule.to if name not in names]:
            there = listed(map(repr, sorted(names)))
            raise NotFoundError(
                f"there is no channel {unknown[0]!r}; {f'there are {there}' if there else 'add one first'}"
            )
        known = {view.rule.name for view in await self._store.alert_rules()}
        if rule.name not in known and len(known) >= RULES_LIMIT:
            raise ConflictError(f"there are {RULES_LIMIT} rules already: delete one first")
        return await self._store.save_alert_rule(rule, self._because(why))

    async def pause(self, name: str, *, until: datetime | None = None, why: str | None = None) -> RuleView:
        """Pause a rule, even one of code: until then, or until resumed. Alerts of that time are not sent later."""
        if until is not None and (until.tzinfo is None or until <= await self._store.now()):
            raise ArgumentError("until", f"must be a future time, with its zone, got {until.isoformat()}")
        await self.rule(name)
        paused = await self._store.pause_alert_rule(name, self._because(why), paused=True, until=until)
        return _found(name, paused)

    async def resume(self, name: str, *, why: str | None = None) -> RuleView:
        """End the pause of a rule; raises ConflictError if it is not paused."""
        if (await self.rule(name)).paused_at is None:
            raise ConflictError(f"rule {name!r} is not paused")
        return _found(name, await self._store.pause_alert_rule(name, self._because(why), paused=False))

    async def delete(self, name: str, *, why: str | None = None) -> None:
        """Delete a rule; its open alerts end without a notice. One of code comes back with the next worker's start."""
        await self.rule(name)
        if not await self._store.delete_alert_rule(name, self._because(why)):
            raise NotFoundError(f"there is no rule {name!r}")

    async def channels(self) -> list[ChannelView]:
        """All channels, by name, without their secrets."""
        broken = read_memory((await self._store.alert_book(timedelta(0))).memory).broken
        return [shown(record, is_broken=record.channel.name in broken) for record in await self._store.alert_channels()]

    async def channel(self, name: str) -> ChannelView:
        """One channel, without its secrets; raises NotFoundError."""
        for view in await self.channels():
            if view.name == name:
                return view
        raise await self._no_channel(name)

    async def save_channel(
        self,
        name: str,
        address: str,
        *,
        secret: str | None = None,
        allow_private: bool = False,
        why: str | None = None,
    ) -> ChannelView:
        """Create a channel, or replace one made at run time; raises ConflictError for one declared in code.

        `address` is env:NAME, or the address itself, which is stored encrypted. `secret` signs webhooks.
        """
        channel = await asyncio.to_thread(  # the first address of a service loads all that Apprise knows
            make_channel, name, address, secret=secret, allow_private=allow_private
        )
        known = {record.channel.name for record in await self._store.alert_channels()}
        if name not in known and len(known) >= CHANNELS_LIMIT:
            raise ConflictError(f"there are {CHANNELS_LIMIT} channels already: delete one first")
        return shown(await self._store.save_alert_channel(channel, self._because(why)), is_broken=False)

    async def delete_channel(self, name: str, *, why: str | None = None) -> None:
        """Delete a channel; raises ConflictError while a rule sends to it, or while incidents in it are open."""
        users = [view.rule.name for view in await self._store.alert_rules() if name in view.rule.to]
        if users:
            raise ConflictError(f"channel {name!r} is used by {listed(map(repr, users))}: change these rules first")
        await self._refuse_open_incidents(name)
        if not await self._store.delete_alert_channel(name, self._because(why)):
            raise await self._no_channel(name)

    async def open(self) -> list[Alert]:
        """The alerts that are open now, newest first, at most 500."""
        return await self._store.alerts(AlertFilter(open_only=True), ALERTS_PER_PAGE)

    async def history(self, *, rule: str | None = None, limit: int = 50, before: str | None = None) -> AlertsSeen:
        """Alerts, open and over, the last to open first. They are kept for 30 days."""
        check_whole("limit", limit, 1, ALERTS_PER_PAGE)
        place = None if before is None else _read_place(before)
        found = await self._store.alerts(AlertFilter(rule=rule, before=place), limit + 1)
        page = tuple(found[:limit])
        return AlertsSeen(page, _place(page[-1].opened_at, page[-1].id) if len(found) > limit else None)

    async def notices(self, *, limit: int = 50, before: str | None = None) -> NoticesSeen:
        """The sent notices with the state of each delivery, newest first. Notices are kept for 30 days."""
        check_whole("limit", limit, 1, ALERTS_PER_PAGE)
        found = await self._store.notices(limit + 1, None if before is None else _read_place(before))
        page = tuple(found[:limit])
        return NoticesSeen(page, _place(page[-1].at, page[-1].id) if len(found) > limit else None)

    async def notice(self, notice_id: str) -> Notice:
        """One notice with its deliveries; raises NotFoundError."""
        found = await self._store.notice(notice_id)
        if found is None:
            raise NotFoundError(f"there is no notice {notice_id!r:.60}")
        return found

    async def preview(self, rule: AlertRule | str) -> AlertPreview:
        """What a rule, given or by name, finds now, and the notice it would send. Sends and stores nothing."""
        return await preview(self._store, (await self.rule(rule)).rule if isinstance(rule, str) else rule)

    async def test(self, channels: Iterable[str] | str, *, why: str | None = None) -> Notice:
        """Send a test through these channels; `notice(id)` says later how it went."""
        wanted = list(dict.fromkeys([channels] if isinstance(channels, str) else channels))
        known = {record.channel.name for record in await self._store.alert_channels()}
        for name in wanted:
            if name not in known:
                raise await self._no_channel(name)
        if not wanted:
            raise ArgumentError("channels", "must name at least one")
        by = self._because(why)
        words = Draft(
            sort=NoticeSort.TEST,
            severity=AlertSeverity.INFO,
            title="A test of perdure's alerts",
            body=f"{by.actor} has sent this test. If you read it, the channel works.",
            path="/alerts",
        )
        notice, jobs = notice_to(words, wanted, await self._store.now())
        await self._store.add_notice(notice, jobs, by)
        self._store.ring({job.queue for job in jobs})
        return notice

    async def _refuse_open_incidents(self, name: str) -> None:
        """Without its channel an incident could never be resolved. A channel that is broken resolves none anyway."""
        book = await self._store.alert_book(timedelta(0))
        memory = read_memory(book.memory)
        if name in memory.broken:
            return
        under_way = [notice_id for notice_id, one in book.deliveries if one.channel == name]
        notices = [await self._store.notice(notice_id) for notice_id in under_way]
        if any(name in one.channels and one.ends for one in memory.incidents.values()) or any(
            notice is not None and notice.resolves for notice in notices
        ):
            raise ConflictError(
                f"channel {name!r} has open incidents: a worker resolves them within seconds, because no rule sends "
                "there any more; delete it then"
            )

    async def _no_channel(self, name: str) -> NotFoundError:
        there = listed(repr(record.channel.name) for record in await self._store.alert_channels())
        return NotFoundError(f"there is no channel {name!r}; {f'there are {there}' if there else 'there is none'}")

    def _because(self, why: str | None) -> By:
        return replace(self._by, why=checked_why(why))


def _found(name: str, view: RuleView | None) -> RuleView:
    if view is None:
        raise NotFoundError(f"there is no rule {name!r}")
    return view


def _place(at: datetime, thing_id: str) -> str:
    return f"{at.isoformat()} {thing_id}"


def _read_place(text: str) -> tuple[datetime, str]:
    at, _, thing_id = text.partition(" ")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ArgumentError("before", f"must be the `next` of a page, got {text!r:.60}")
    return moment, thing_id
