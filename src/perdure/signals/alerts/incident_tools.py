"""What a notice asks of a tool that keeps incidents: to open some, and to resolve some.

The request that opens an incident may be retried for half an hour, and the one that resolves it may overtake it. So an
opening looks first whether its incident is over, and looks again once it was accepted: then it resolves it itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import json

from perdure.domain.alerts.alert import Notice, NoticeSort
from perdure.domain.alerts.rule import AlertSeverity
from perdure.signals.alerts.errors import DeliveryFailed
from perdure.signals.webhooks.errors import SendFailed, SendRefused
from perdure.signals.webhooks.sender import Sender

IsOpen = Callable[[str], Awaitable[bool]]
Report = Callable[[str, bool], Awaitable[None]]
_CLOSES_BY_ALIAS: Final = frozenset({"opsgenie", "jira"})
_GONE: Final = 404
_TIMEOUT: Final = "20s"


def keeps_incidents(service: Any) -> bool:
    """Whether a service of Apprise keeps incidents under our keys; not if its address says how it is to be used."""
    if "map" not in getattr(service, "template_args", {}).get("action", {}).get("values", ()):
        return False
    if hasattr(service, "dedup"):
        return service.dedup in {None, ""}
    return hasattr(service, "alias") and not service.alias and service.action == "map"


def tie(service: Any, key: str) -> None:
    """Have a service use this key for its next call: it triggers, or resolves if the call is a success."""
    if hasattr(service, "dedup"):
        service.dedup, service.action = key, "map"
    else:  # mapped, Apprise would look for the alert in its storage on disk, which is off, and send nothing
        service.alias, service.action = key, "new"


async def report_incidents(notice: Notice, report: Report, is_open: IsOpen) -> None:
    """Call `report` with each key, and whether it is over."""
    if notice.sort in {NoticeSort.TEST, NoticeSort.CHANNEL}:
        works_again = notice.sort is NoticeSort.CHANNEL and notice.severity is AlertSeverity.INFO
        await report(incident_of(notice), works_again)
        return
    for one in notice.opens:
        if one.ends and not await is_open(one.key):
            await report(one.key, True)
            continue
        await report(one.key, False)
        if one.ends and not await is_open(one.key):
            await report(one.key, True)
    for key in notice.resolves:
        await report(key, True)


def incident_of(notice: Notice) -> str:
    """The key of the incident of a broken channel, the same until it works again; a test is an incident of its own."""
    about = [notice.id] if notice.sort is NoticeSort.TEST else [notice.rule or "", *sorted(notice.keys)]
    return f"perdure-{hashlib.sha256(json.encode(about)).hexdigest()[:32]}"


def closes_by_alias(scheme: str) -> bool:
    """Whether perdure closes the incidents of this service itself, because Apprise cannot."""
    return scheme in _CLOSES_BY_ALIAS


async def close_by_alias(scheme: str, service: Any, key: str, *, allow_private: bool) -> None:
    """Close an alert of OpsGenie or Jira by its alias. One that does not exist any more is closed already."""
    url = f"{_address_of(scheme, service)}/{key}/close?identifierType=alias"
    headers = {"Authorization": f"GenieKey {service.apikey}", "Content-Type": "application/json"}
    body = json.encode({"source": "perdure", "note": "All causes are over."})
    try:
        await Sender(allow_private=allow_private).send(url, body, headers=headers, timeout=_TIMEOUT)
    except (SendFailed, SendRefused) as error:
        if error.answer is None and isinstance(error, SendRefused):
            raise
        status = None if error.answer is None else error.answer.status
        if status != _GONE:
            said = "was not reached" if status is None else f"answered {status}"
            raise DeliveryFailed(f"the service of {scheme}:// {said}, so an incident is still open there") from None


def _address_of(scheme: str, service: Any) -> str:
    """The address of the alerts of a service, as its plugin knows it."""
    from apprise.plugins import jira, opsgenie  # noqa: PLC0415 - an extra

    known = opsgenie.OPSGENIE_API_LOOKUP if scheme == "opsgenie" else jira.JIRA_API_LOOKUP
    return str(known[service.region_name])
