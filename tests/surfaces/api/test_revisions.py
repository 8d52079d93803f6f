"""Versions against concurrent edits."""

from __future__ import annotations

import gc

import pytest
from starlette.requests import Request

from perdure.errors import ConflictError
from perdure.surfaces.api.problems import PreconditionFailed
from perdure.surfaces.api.revisions import Turns, check_version

NOW = '"a1"'


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw})


@pytest.mark.parametrize(
    "headers", [{}, {"if_match": NOW}, {"if_match": '"old", "a1"'}, {"if_match": "*"}, {"if_none_match": '"old"'}]
)
def test_a_command_for_the_current_version_passes(headers: dict[str, str]) -> None:
    check_version(request(**headers), None, NOW, "job 1")
    check_version(request(**headers), "a1", NOW, "job 1")
    check_version(request(**headers), NOW, NOW, "job 1")


@pytest.mark.parametrize("headers", [{"if_match": '"old"'}, {"if_none_match": NOW}, {"if_none_match": "*"}])
def test_another_version_in_a_header_is_a_failed_precondition(headers: dict[str, str]) -> None:
    with pytest.raises(PreconditionFailed, match="job 1 has changed since you read it"):
        check_version(request(**headers), None, NOW, "job 1")


def test_another_version_in_the_body_is_a_conflict() -> None:
    with pytest.raises(ConflictError, match="job 1 has changed since you read it"):
        check_version(request(), "old", NOW, "job 1")


def test_what_does_not_exist_matches_no_version_and_can_be_made() -> None:
    check_version(request(if_none_match="*"), None, None, "schedule a")
    with pytest.raises(PreconditionFailed):
        check_version(request(if_match="*"), None, None, "schedule a")
    with pytest.raises(ConflictError):
        check_version(request(), "a1", None, "schedule a")


def test_a_thing_has_one_lock_while_it_is_in_use_and_none_afterwards() -> None:
    turns = Turns()
    lock = turns.of("jobs", "1")
    assert turns.of("jobs", "1") is lock
    assert turns.of("jobs", "2") is not lock
    del lock
    gc.collect()
    assert not turns._locks
