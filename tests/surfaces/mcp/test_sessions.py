"""Sessions of agents."""

from __future__ import annotations

from perdure.surfaces.mcp.sessions import CallersSessions


def test_a_caller_who_opens_too_many_loses_the_least_recently_used_and_no_other_caller_does() -> None:
    sessions = CallersSessions(2)
    for session in ("a", "b", "a", "c", "d"):
        sessions.used("ada", session)
    sessions.used("bob", "x")
    assert sessions.take_surplus("ada") == ["b", "a"]
    assert sessions.take_surplus("ada") == sessions.take_surplus("bob") == sessions.take_surplus("eve") == []
    assert sessions.take_all() == [("ada", "c"), ("ada", "d"), ("bob", "x")]
    assert sessions.take_all() == []
