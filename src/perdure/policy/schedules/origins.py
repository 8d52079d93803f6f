"""Declared schedules and those made at run time do not replace each other."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.domain.schedule import Origin
from perdure.errors import ConflictError


def origin_conflict(names: Iterable[str], wanted: Origin) -> ConflictError:
    """The error for schedules that exist with the other origin than the `wanted` one."""
    named = ", ".join(map(repr, names))
    if wanted is Origin.DECLARED:
        return ConflictError(
            f"schedule {named} was made at run time: delete that one, or declare this one under another name"
        )
    return ConflictError(f"schedule {named} is declared in code: change it there, or choose another name")
