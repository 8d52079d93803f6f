"""Calls of the store travel with their arguments as they were, and no call travels that is not meant to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from tests.support.bench import a_claim

from perdure.clock import SystemClock
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.storage.port import Store
from perdure.worker.isolation.store_calls import RELAYED, StoreCall, answer_of, arguments_of, call_of

A_STEP = StepRecord(key="fetch", kind=StepKind.CALL, state=StepState.DONE, result="1", begun_at=SystemClock().now())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("once_per", ("key", timedelta(minutes=1), "caller")),
        ("save_steps", ([StepWrite(a_claim("plain"), A_STEP)],)),
        ("children", ("parent", "key", 0, 10)),
    ],
)
def test_arguments_arrive_as_they_were(name: str, arguments: tuple[Any, ...]) -> None:
    there = msgspec.json.decode(msgspec.json.encode(call_of(name, arguments)), type=StoreCall)
    assert arguments_of(there) == arguments


def test_an_answer_arrives_as_it_was() -> None:
    assert answer_of("once_per", Raw(msgspec.json.encode(True))) is True
    assert answer_of("steps", Raw(msgspec.json.encode({"job": [A_STEP]}))) == {"job": [A_STEP]}


def test_no_other_call_is_relayed() -> None:
    assert all(hasattr(Store, name) for name in RELAYED)
    with pytest.raises(LookupError, match="acknowledge is not relayed"):
        arguments_of(call_of("acknowledge", ([],)))
