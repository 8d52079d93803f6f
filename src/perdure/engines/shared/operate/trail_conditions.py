"""Which entries of the audit trail a filter asks for, and along which index they are read."""

from __future__ import annotations

from typing import Any, Final

from perdure.domain.operate.audit import SYSTEM
from perdure.storage.operate.audit import AuditFilter

_INDEXED: Final = ("job_id", "bulk", "actor", "action")  # the index that leaves the fewest entries first
_CONDITIONS: Final = (*_INDEXED, "source")


def conditions_of(which: AuditFilter) -> tuple[dict[str, Any], str]:
    """The values that entries must have, besides their time, and the index that fits best: a name, or `time`.

    The index of actors leaves out the engine itself.
    """
    given = {name: value for name in _CONDITIONS if (value := getattr(which, name)) is not None}
    names = [name for name in _INDEXED if name in given and (name, given[name]) != ("actor", SYSTEM)]
    return given, names[0] if names else "time"
