"""JobFilter(where=…): conditions on what jobs carry mean the same on every engine."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import HOSTILE, apply, claim_one, employ, enqueue

from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.domain.operate.condition import Condition
from perdure.errors import ArgumentError
from perdure.policy.matching import meets
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Tally

DOCUMENTS: list[dict[str, Any]] = [
    {"user": {"id": 42, "name": "Ada"}, "url": "https://Example.org/a?b=1", "items": [1, 2, {"x": "deep"}]},
    {"user": {"id": "42", "name": "Zoë 漢字"}, "flag": True, "none": None, "price": 1.5},
    {"user": {"id": 43}, "flag": "true", "price": 42.0, "0": "zero", "empty": "", "100%": "50_%"},
    {"user": [], "items": [42], "price": -7, "big": 12345678901234567890, "none": "null"},
    {"user": "42", "": 1, "a.b": {'q"uote': "it's"}, "price": "2026-01-31T09:00:00Z"},
    {"nul": "a\x00b", "user": {"id": 44}},
    {},
]
PATHS = [
    (),
    ("user",),
    ("user", "id"),
    ("user", "name"),
    ("url",),
    ("items", "0"),
    ("items", "-1"),
    ("items", "2", "x"),
    ("items", "9"),
    ("flag",),
    ("none",),
    ("price",),
    ("0",),
    ("big",),
    ("a.b", 'q"uote'),
    ("empty",),
    ("100%",),
    ("user", "id", "deeper"),
]
VALUES = [
    "42",
    "43",
    "true",
    "null",
    "1.5",
    "-7",
    "Ada",
    "example",
    "zoë",
    "it's",
    "_",
    "%",
    "zero",
    "2026-01",
    "b=1",
    "",
]
UNREADABLE = DOCUMENTS[5]  # PostgreSQL holds no NUL in jsonb: nothing is found in such a document there


async def found(store: Store, *conditions: Condition, **more: Any) -> set[JobId]:
    return {job.id for job in await store.jobs(JobFilter(where=conditions, **more), Page(100))}


async def test_a_condition_means_the_same_on_every_engine(store: Store) -> None:
    documents = {await enqueue(store, args=json.dumps(each), meta=json.dumps(each)): each for each in DOCUMENTS}
    for path in PATHS:
        conditions = [Condition("args", path, "exists")]
        for value in VALUES:
            conditions += [Condition("args", path, op, value) for op in ("=", "!=", ">", "<")]
            conditions += [Condition("args", path, "~", value)] if value else []
        for condition in conditions:
            expected = {job_id for job_id, each in documents.items() if meets(each, [condition])}
            unsure = {job_id for job_id, each in documents.items() if each is UNREADABLE}
            assert await found(store, condition) - unsure == expected - unsure, condition


@pytest.mark.parametrize(
    "hidden",
    [
        {"card": {"$secret": "hunter2"}},
        {"card": {"$secret": {"pin": ["hunter2", {"a": 1}]}}},
        {"user": {"db_password": "hunter2"}},
        {"x": [{"accessToken": 'a\\"hunter2'}, {"API-KEY": ["b", ["hunter2"]]}]},
        {"token": "b", "secret": {"user": "ada", "one": "hunter2"}, "cookie": 7},
        {"Ä": "ß", "Authorization": "hunter2"},
        {"urls": ["https://ada:hunter2@example.com/", "no"]},
    ],
)
async def test_a_piece_of_text_is_looked_for_in_what_is_shown(store: Store, hidden: dict[str, Any]) -> None:
    """A secret is not found out letter by letter, whoever may search; what stands beside it is found."""
    document = {"before": "a lamp", **hidden, "after": 'the "password", hunter3: 42'}
    job_id = await enqueue(store, args=json.dumps(document), meta=json.dumps([document]))
    for field in ("args", "meta"):
        for piece, wanted in (("hunter2", set()), ("hunter", {job_id}), ("LAMP", {job_id}), ("42", {job_id})):
            condition = Condition(field, (), "~", piece)
            assert await found(store, condition) == wanted, condition
            assert meets([document], [condition]) is bool(wanted)
    assert await store.count(JobFilter(where=Condition("args", (), "~", "hunter2"))) == [Tally(jobs=0)]


async def test_a_piece_of_the_password_of_a_url_is_not_found(store: Store) -> None:
    job_id = await enqueue(store, args='{"url":"https://ada:hunter2@example.com/?a=b:c@d"}')
    for piece, wanted in (("hunter2", set()), ("r2@ex", set()), ("ada:", {job_id}), ("b:c@D", {job_id})):
        assert await found(store, Condition("args", ("url",), "~", piece)) == wanted, piece


async def test_conditions_on_meta_result_tags_and_error(store: Store) -> None:
    worker_id = await employ(store)
    done = await enqueue(store, meta='{"tenant":"acme"}', tags=("eu", "vip"))
    await apply(store, transition.succeeded(await claim_one(store, worker_id), '{"sum":3}', ()))
    dead = await enqueue(store, tags=("Europe",))
    failure = Failure("TimeoutError", "Gateway 7 did not answer")
    await apply(store, transition.died(await claim_one(store, worker_id), Reason.EXHAUSTED, failure))
    ready = await enqueue(store, meta='{"tenant":"other"}')
    everyone = {done, dead, ready}
    assert await found(store, Condition("meta", ("tenant",), "=", "acme")) == {done}
    assert await found(store, Condition("meta", ("tenant",), "!=", "acme")) == {dead, ready}
    assert await found(store, Condition("result", ("sum",), "=", 3)) == {done}
    assert await found(store, Condition("result", ("sum",), ">", 2.5)) == {done}
    assert await found(store, Condition("result", ("sum",), "!=", 3)) == {dead, ready}
    assert await found(store, Condition("result")) == {done}
    assert await found(store, Condition("tags", (), "=", "eu")) == {done}
    assert await found(store, Condition("tags", (), "~", "EU")) == {done, dead}
    assert await found(store, Condition("tags", (), "!=", "eu")) == {dead, ready}
    assert await found(store, Condition("tags")) == {done, dead}
    assert await found(store, Condition("error", (), "~", "error: gateway")) == {dead}
    assert await found(store, Condition("error", ("type",), "=", "TimeoutError")) == {dead}
    assert await found(store, Condition("error", ("message",), "!=", "x")) == everyone
    assert await found(store, Condition("error")) == {dead}
    both = (Condition("tags"), Condition("error", ("type",), "~", "timeout"))
    assert await found(store, *both) == {dead}
    assert await found(store, *both, states="succeeded") == set()
    for which in (JobFilter(where=both), JobFilter(where=both, states="dead")):
        assert await store.count(which) == [Tally(jobs=1)]
    assert await store.count(JobFilter(where=Condition("result", ("sum",), "=", 3))) == [Tally(jobs=1)]
    assert await store.requeue(JobFilter(where=both), By("ada"), 10) == [dead]
    assert await store.cancel(JobFilter(where=Condition("meta", ("tenant",), "~", "OTHER")), By("ada"), 10) == [ready]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_only_text(store: Store, text: str) -> None:
    job_id = await enqueue(store, args=json.dumps({text: {"x": text}}, ensure_ascii=False), tags=(text,))
    await enqueue(store)
    for op in ("=", "~"):
        assert await found(store, Condition("args", (text, "x"), op, text)) == {job_id}
        assert await found(store, Condition("tags", (), op, text)) == {job_id}
    assert await found(store, Condition("args", (text, "x"))) == {job_id}


async def test_a_job_that_came_back_is_found_by_its_last_error_only(store: Store) -> None:
    worker_id = await employ(store)
    job_id = await enqueue(store)
    for message in ("first", "second"):
        claim = await claim_one(store, worker_id)
        await apply(store, transition.retrying(claim, Reason.FAILED, Failure("E", message), timedelta(0)))
    assert await found(store, Condition("error", (), "~", "second")) == {job_id}
    assert await found(store, Condition("error", (), "~", "first")) == set()


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (("arg",), "has no field"),
        (("args", (), "LIKE", "x"), "has no operator"),
        (("args", ("a",) * 17, "=", 1), "a path of 17 parts"),
        (("args", ("a" * 201,), "=", 1), "a part of a path of 201 characters"),
        (("args", ("a",), "=", "x" * 1_001), "a value of 1001 characters"),
        (("args", ("",), "=", 1), "an empty part in the path"),
        (("args", (), "~", ""), "an empty text"),
        (("args", (), "=", [1]), r"compares with \[1\]"),
        (("args", (), "=", float("nan")), "compares with nan"),
        (("args", (), "=", "a\x00"), "no stored text"),
        (("args", ("\ud800",), "=", "a"), "no stored text"),
        (("tags", ("x",), "=", "a"), "tags have no path"),
        (("error", ("x",), "=", "a"), "error has no 'x'"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(condition: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Condition(*condition)


def test_a_filter_takes_one_condition_or_some() -> None:
    one = Condition("args", ("a",), "=", 1)
    assert JobFilter(where=one) == JobFilter(where=[one])
    with pytest.raises(ArgumentError, match="must be conditions"):
        JobFilter(where=("args.a=1",))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="at most 10"):
        JobFilter(where=[one] * 11)
