"""The services of Apprise: Slack, Teams, PagerDuty and the others.

Apprise only sends one message to one service. Its retries are off, because the job retries; so are
redirects, its storage on disk, and its services that act on this machine. It connects to public addresses only, unless
the channel allows private ones; and errors are reported without the text of the service, which may hold a key.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from msgspec import json

from perdure.domain.alerts.alert import Notice, NoticeSort
from perdure.domain.alerts.rule import AlertSeverity
from perdure.errors import ArgumentError
from perdure.operate.alerts.addresses import check_service
from perdure.signals.alerts.errors import DeliveryFailed, DeliveryRefused
from perdure.signals.alerts.guarded import Watch
from perdure.signals.alerts.message import subject, text
from perdure.signals.alerts.threads import in_thread

DEADLINE_SECONDS: Final = 30.0
_CALLS: Final = re.compile(r"@(?=everyone|here|channel|all\b)|<(?=[!@])", re.IGNORECASE)
_TYPES: Final = {AlertSeverity.CRITICAL: "failure", AlertSeverity.WARNING: "warning", AlertSeverity.INFO: "info"}


async def notify_service(
    scheme: str, address: str, notice: Notice, *, allow_private: bool, deadline: float = DEADLINE_SECONDS
) -> None:
    """Send one notice; raises DeliveryFailed, or DeliveryRefused or SendRefused if the address cannot be used."""
    try:
        service = await in_thread(lambda: check_service("address", scheme, address), seconds=deadline)
    except ArgumentError as error:
        raise DeliveryRefused(str(error)) from None
    service.redirects = False
    service.service_retry = 0
    service.overflow_mode = "truncate"  # a text that is too long would be refused, each time
    is_over = _is_end(notice)
    _tie(service, incident_of(notice), is_over=is_over)
    kind = "success" if is_over else _TYPES[notice.severity]
    watch = Watch(allow_private=allow_private)

    def notify() -> bool:
        with watch.on():
            title, body = _without_calls(subject(notice)), _without_calls(text(notice))
            return bool(service.notify(title=title, body=body, notify_type=kind, body_format="text"))

    called = f"the service of {scheme}://"
    try:
        taken = await in_thread(notify, seconds=deadline)
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


def incident_of(notice: Notice) -> str:
    """The name that notices of the same causes have in an incident tool; a test is an incident of its own."""
    about = [notice.id] if notice.sort is NoticeSort.TEST else [notice.rule or "", *sorted(notice.keys)]
    return f"perdure-{hashlib.sha256(json.encode(about)).hexdigest()[:32]}"


def _is_end(notice: Notice) -> bool:
    works_again = notice.sort is NoticeSort.CHANNEL and notice.severity is AlertSeverity.INFO
    return notice.sort is NoticeSort.RECOVERY or works_again


def _tie(service: Any, incident: str, *, is_over: bool) -> None:
    """Make an incident tool open an incident for a notice, and resolve it at the end, unless its address says how.

    For OpsGenie and Jira, Apprise finds the alert to add a note to, or to close, in its storage on disk. The storage is
    off, so Apprise would send nothing and report success: with these two, each notice opens an alert.
    """
    if "map" not in getattr(service, "template_args", {}).get("action", {}).get("values", ()):
        return
    if getattr(service, "dedup", "given") in {None, ""}:
        service.dedup, service.action = incident, "map"
    elif hasattr(service, "alias") and service.action == "map":
        service.action = "new"
        if not service.alias and not is_over:
            service.alias = incident


def _without_calls(text: str) -> str:
    """The text without mentions: an error of a job may say @everyone."""
    return _CALLS.sub(lambda call: f"{call[0][0]}\u200b{call[0][1:]}", text)
