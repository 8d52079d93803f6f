"""The token of a dry run starts the plan that was shown, and nothing else."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import SECOND
from tests.support.builders.views import NOON

from perdure.domain.jobs.states import JobState
from perdure.errors import ConflictError
from perdure.operate.bulk.confirmation import VALID_FOR, Confirmed, bulk_id, read_token, sign
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.records import JobFilter

KEY = "k" * 64
PLAN = Confirmed(
    action="requeue",
    filter=JobFilter(kind="mail", states=frozenset({JobState.DEAD})),
    params=BulkParams(limit=5),
    jobs=5,
    capped=False,
    at=NOON,
)


def test_a_token_holds_its_plan() -> None:
    assert replace(read_token(KEY, sign(KEY, PLAN), NOON), nonce="") == PLAN


def test_two_dry_runs_of_the_same_plan_start_two_commands_and_one_token_only_one() -> None:
    first, second = sign(KEY, PLAN), sign(KEY, PLAN)
    assert bulk_id(first) != bulk_id(second)
    assert bulk_id(first) == bulk_id(first)


def test_a_token_of_another_database_is_not_valid() -> None:
    with pytest.raises(ConflictError, match="not valid here: make the dry run again"):
        read_token("other", sign(KEY, PLAN), NOON)


def test_a_token_that_was_changed_is_not_valid() -> None:
    token = sign(KEY, PLAN)
    raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    changed = urlsafe_b64encode(raw.replace(b'"limit":5', b'"limit":9')).decode().rstrip("=")
    assert changed != token
    for text in (changed, token[:-4], "", "é", "a", "!" * 40, token + "AAAA"):
        with pytest.raises(ConflictError, match="not valid here"):
            read_token(KEY, text, NOON)


def test_a_token_is_valid_for_ten_minutes_also_while_the_clock_is_put_back() -> None:
    token = sign(KEY, PLAN)
    for now in (NOON + VALID_FOR, NOON - VALID_FOR):
        assert read_token(KEY, token, now).jobs == 5
    for now in (NOON + VALID_FOR + SECOND, NOON - VALID_FOR - SECOND):
        with pytest.raises(ConflictError, match="older than 10m"):
            read_token(KEY, token, now)
