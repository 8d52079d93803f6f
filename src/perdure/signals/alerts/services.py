"""The services of Apprise: Slack, Teams, PagerDuty and the others.

Apprise only sends one message to one service. Its retries are off, because the job retries; so are
redirects, its storage on disk, and its services that act on this machine. It connects to public addresses only, unless
the channel allows private ones; and errors are reported without the text of the service, which may hold a key.
"""

from __future__ import annotations

import re
from typing import Any, Final

from perdure.domain.alerts.alert import Notice, NoticeSort
from perdure.domain.alerts.rule import AlertSeverity
from perdure.errors import ArgumentError
from perdure.operate.alerts.addresses import check_service
from perdure.signals.alerts.errors import DeliveryFailed, DeliveryRefused
from perdure.signals.alerts.guarded import Watch
from perdure.signals.alerts.incident_tools import (
    IsOpen,
    close_by_alias,
    closes_by_alias,
    keeps_incidents,
    report_incidents,
    tie,
)
from perdure.signals.alerts.message import subject, text
from perdure.signals.alerts.threads import in_thread

DEADLINE_SECONDS: Final = 30.0
_CALLS: Final = re.compile(r"@(?=everyone|here|channel|all\b)|<(?=[!@])", re.IGNORECASE)
_TYPES: Final = {AlertSeverity.CRITICAL: "failure", AlertSeverity.WARNING: "warning", AlertSeverity.INFO: "info"}


async def notify_service(
    scheme: str,
    address: str,
    notice: Notice,
    *,
    allow_private: bool,
    is_open: IsOpen,
    deadline: float = DEADLINE_SECONDS,
) -> None:
    """Send one notice; raises DeliveryFailed, or DeliveryRefused or SendRefused if the address cannot be used.

    A service that keeps incidents is asked to open and resolve those of the notice; `is_open` says whether an incident
    is not over yet.
    """
    try:
        service = await in_thread(lambda: check_service("address", scheme, address), seconds=deadline)
    except ArgumentError as error:
        raise DeliveryRefused(str(error)) from None
    service.redirects = False
    service.service_retry = 0
    service.overflow_mode = "truncate"  # a text that is too long would be refused, each time
    call = _Call(scheme, service, notice, allow_private=allow_private, deadline=deadline)
    if keeps_incidents(service):
        await report_incidents(notice, call.report, is_open)
    elif not notice.only_resolves:
        if hasattr(service, "alias") and service.action == "map":
            service.action = "new"  # mapped, Apprise would send nothing: see `tie`
        await call.notify(is_over=notice.sort is NoticeSort.RECOVERY)


class _Call:
    """Calls of one service for one notice."""

    def __init__(self, scheme: str, service: Any, notice: Notice, *, allow_private: bool, deadline: float) -> None:
        self._scheme = scheme
        self._service = service
        self._notice = notice
        self._allow_private = allow_private
        self._deadline = deadline

    async def report(self, key: str, is_over: bool) -> None:
        """Open the incident of this key, or resolve it."""
        if is_over and closes_by_alias(self._scheme):
            await close_by_alias(self._scheme, self._service, key, allow_private=self._allow_private)
            return
        tie(self._service, key)
        await self.notify(is_over=is_over)

    async def notify(self, *, is_over: bool) -> None:
        """Send the notice."""
        service, notice, watch = self._service, self._notice, Watch(allow_private=self._allow_private)
        kind = "success" if is_over else _TYPES[notice.severity]

        def notify() -> bool:
            with watch.on():
                title, body = _without_calls(subject(notice)), _without_calls(text(notice))
                return bool(service.notify(title=title, body=body, notify_type=kind, body_format="text"))

        called = f"the service of {self._scheme}://"
        try:
            taken = await in_thread(notify, seconds=self._deadline)
        except DeliveryFailed as error:
            raise DeliveryFailed(f"{called} {error}") from None
        except Exception as error:  # noqa: BLE001 - services raise what they like, and the text may hold a secret
            watch.raise_refused()
            raise DeliveryFailed(f"{called} failed: {type(error).__name__}") from None
        watch.raise_refused()
        if not taken and watch.has_asked and not watch.has_connected:
            raise DeliveryFailed(f"{called} was not reached: its host has no address")
        if not taken:
            raise DeliveryFailed(f"{called} did not take the notice: is it up, and is its key still valid?")


def _without_calls(text: str) -> str:
    """The text without mentions: an error of a job may say @everyone."""
    return _CALLS.sub(lambda call: f"{call[0][0]}\u200b{call[0][1:]}", text)
