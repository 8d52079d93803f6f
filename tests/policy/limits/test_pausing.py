"""Which jobs a pause applies to: all its parts must match, and arguments are compared as JSON."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.domain.gate import Pause
from perdure.policy.limits.pausing import covers


def pause(queue: str | None = None, kind: str | None = None, args: str | None = None) -> Pause:
    return Pause(id="p1", queue=queue, kind=kind, args=args, actor="ann", at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("held", "applies"),
    [
        (pause(queue="mail"), True),
        (pause(queue="reports"), False),
        (pause(kind="send"), True),
        (pause(queue="mail", kind="send"), True),
        (pause(queue="reports", kind="send"), False),
    ],
)
def test_all_parts_must_match(held: Pause, applies: bool) -> None:
    assert covers(held, "mail", "send", "{}") is applies


@pytest.mark.parametrize(
    ("wanted", "given", "applies"),
    [
        ('{"tenant":7}', '{"tenant":7,"n":1}', True),
        ('{"tenant":7}', '{"tenant":7.0}', True),
        ('{"tenant":1}', '{"tenant":true}', False),
        ('{"tenant":7}', "{}", False),
        ('{"tenant":null}', "{}", False),  # an omitted argument has no value
        ('{"to":{"id":[1,2]}}', '{"to":{"id":[1,2]}}', True),
        ('{"to":{"id":[1,2]}}', '{"to":{"id":[2,1]}}', False),
        ('{"tenant":7}', "damaged", False),
    ],
)
def test_arguments_are_compared_as_json(wanted: str, given: str, applies: bool) -> None:
    assert covers(pause(kind="send", args=wanted), "mail", "send", given) is applies
