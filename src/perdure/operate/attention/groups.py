"""Joins many needs of one type: when a host is lost, its workers and queues must not hide everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from perdure.operate.attention.need import Need
from perdure.operate.wording import listed
from perdure.storage.operate.diagnosis import Severity

_NEEDS_SHOWN_SINGLY: Final = 3
_NEEDS_NAMED: Final = 3


def grouped(needs: Sequence[Need]) -> list[Need]:
    """More than three queues without a worker become one need, and so do more than three lost workers.

    The one need stands where the first of them stood. Alerts do not use it: they name each queue and each worker.
    """
    return _joined(_joined(needs, _is_unserved, _unserved), _is_lost, _lost)


def _joined(
    needs: Sequence[Need], is_meant: Callable[[Need], bool], join: Callable[[Sequence[Need]], Need]
) -> list[Need]:
    meant = [need for need in needs if is_meant(need)]
    if len(meant) <= _NEEDS_SHOWN_SINGLY:
        return list(needs)
    at = needs.index(meant[0])
    rest = [need for need in needs[at:] if not is_meant(need)]
    return [*needs[:at], join(meant), *rest]


def _is_unserved(need: Need) -> bool:
    return need.about == "queue" and need.severity is Severity.PROBLEM


def _is_lost(need: Need) -> bool:
    return need.about == "worker"


def _unserved(needs: Sequence[Need]) -> Need:
    return replace(
        needs[0],
        name="",
        subject=f"{len(needs):,} queues",
        what=f"have jobs and no worker: {_names(needs)}",
        detail="start workers of these queues, or let quiet ones claim again",
        since=_first(needs),
        path="/queues",
        label="See queues",
        cli="perdure stats",
    )


def _lost(needs: Sequence[Need]) -> Need:
    is_silent = any(need.severity is Severity.PROBLEM for need in needs)
    return replace(
        needs[0],
        severity=Severity.PROBLEM if is_silent else Severity.WARNING,
        name="",
        subject=f"{len(needs):,} workers",
        what=f"were lost: {_names(needs)}",
        detail="their jobs come back to other workers; find out whether they hang, were killed, or lost the network",
        since=_first(needs),
    )


def _names(needs: Sequence[Need]) -> str:
    return listed((need.name for need in needs), most=_NEEDS_NAMED)


def _first(needs: Sequence[Need]) -> datetime | None:
    return min((need.since for need in needs if need.since is not None), default=None)
