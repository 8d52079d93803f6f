"""What a handler logs shows no secret, by its name or by its content, and is else left as it was."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.worker.attempt.log_secrets import WithoutSecrets

KNOWN = ("hunter2",)


def shown(**event: Any) -> dict[str, Any]:
    logged: dict[str, Any] = WithoutSecrets(lambda: KNOWN)(None, "info", event)
    return logged


@pytest.mark.parametrize(
    ("event", "logged"),
    [
        ({"event": "sent", "to": "ada", "n": 3, "none": None}, {"event": "sent", "to": "ada", "n": 3, "none": None}),
        ({"db_password": "other"}, {"db_password": "***"}),
        ({"event": "got hunter2"}, {"event": "got ***"}),
        ({"pair": ("hunter2", 1)}, {"pair": ("***", 1)}),
        ({"args": {"key": "hunter2"}}, {"args": "{'key': '***'}"}),
        ({"args": {"key": "plain"}}, {"args": {"key": "plain"}}),
    ],
)
def test_secrets_are_masked_and_the_rest_is_logged_as_it_is(event: dict[str, Any], logged: dict[str, Any]) -> None:
    assert shown(**event) == logged


def test_an_error_that_holds_a_secret_is_logged_as_a_masked_text() -> None:
    logged = shown(event="failed", exc_info=ValueError("no hunter2"))
    assert (logged["error"], "exc_info" in logged, "hunter2" in str(logged)) == ("ValueError: no ***", False, False)
    plain = ValueError("no")
    assert shown(event="failed", exc_info=plain) == {"event": "failed", "exc_info": plain}


def test_a_value_that_cannot_be_shown_is_left_to_the_log() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    broken = Broken()
    assert shown(thing=broken)["thing"] is broken
