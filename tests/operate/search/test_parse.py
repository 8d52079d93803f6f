"""Searches as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import numbered_id

from perdure.domain.operate.condition import Condition
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.search import parse_condition, parse_search
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
AN_ID = numbered_id(7)


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("", JobFilter()),
        ("kind:charge state:dead", {"kind": "charge", "states": "dead"}),
        ("queue:mail tag:x", {"queue": "mail", "tag": "x"}),
        ("state:dead,cancelled state:ready", {"states": ("dead", "cancelled", "ready")}),
        ("args.user.id=42", {"where": Condition("args", ("user", "id"), "=", 42)}),
        ("args.url~example", {"where": Condition("args", ("url",), "~", "example")}),
        ("args.n>1 args.n<3", {"where": [Condition("args", ("n",), ">", 1), Condition("args", ("n",), "<", 3)]}),
        ('args."a b"."c.d"!="x = y"', {"where": Condition("args", ("a b", "c.d"), "!=", "x = y")}),
        ("args.url=https://a.b/?c=d:e", {"where": Condition("args", ("url",), "=", "https://a.b/?c=d:e")}),
        ("has:result.sum tags=eu", {"where": [Condition("result", ("sum",)), Condition("tags", (), "=", "eu")]}),
        ("error~timeout error.type=E", {"error": "timeout", "where": Condition("error", ("type",), "=", "E")}),
        ("since:1h", {"created_after": NOW - timedelta(hours=1)}),
        ("before:2026-01-01", {"created_before": datetime(2026, 1, 1, tzinfo=UTC)}),
        ("finished-since:7d", {"finished_after": NOW - timedelta(days=7)}),
        ("ref:R-1 mark:read group:0a1b2c", {"ref": "R-1", "mark": "read", "fingerprint": "0a1b2c"}),
        ("is:unmarked", {"marked": False}),
        (AN_ID, {"ids": (AN_ID,)}),
        (f"id:{AN_ID}", {"ids": (AN_ID,)}),
    ],
)  # fmt: skip
def test_a_search_means_a_filter(text: str, which: JobFilter | dict[str, Any]) -> None:
    assert parse_search(text, now=NOW) == (which if isinstance(which, JobFilter) else JobFilter(**which))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timeout", r"timeout: a word alone must be the id of a job; write for example error~timeout"),
        ("kinds:x", "kinds:x: the words before a colon are kind, state, queue"),
        ("kind:", "kind:: a value is missing"),
        ("state:done", "state:done: the states are scheduled, ready"),
        ("arg.x=1", "arg.x=1: conditions are on args, meta, result, error, tags"),
        ("kind=x", "write kind:x"),
        ("args.a.b:1", "write args.a.b=1, or args.a.b~1"),
        ("kind:a kind:b", "kind:b: it is given twice"),
        ("since:yesterday", "since:yesterday: write a span such as 90s"),
        ("since:99999999999d", "write a span"),
        ("id:42", "id:42: the id of a job is a UUID"),
        ("is:new", "is:marked or is:unmarked"),
        ('args.x="open', "a quote that is not closed"),
        ("args..x=1", "has an empty part in the path 'args..x'"),
        ("has:nothing.x", "has no field"),
        ("mark:" + "m" * 51, "is not understood"),
        ("x" * 5_000, "5,000 characters"),
        ("tag:x " * 51, "has 51 words"),
    ],
)
def test_an_error_names_the_word_and_what_may_stand_there(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        parse_search(text, now=NOW)


@pytest.mark.parametrize(
    "text", ["args.password~a", "meta.auth.apiKey>m", 'args.card."$secret"<5', "args.password.0~x", "result.db_token~x"]
)
def test_a_secret_cannot_be_found_out_letter_by_letter(text: str) -> None:
    """Views mask it; a search that tells whether it begins with an `a` would not."""
    for parse in (lambda: parse_search(text, now=NOW), lambda: parse_condition(text)):
        with pytest.raises(ArgumentError, match="a secret: compare it as a whole"):
            parse()
    assert parse_search("args.password=hunter2 has:meta.token args.key~x", now=NOW).where


async def test_the_desk_reads_a_search_by_the_clock_of_the_database(store: Store) -> None:
    desk = Desk(store, "ada")
    assert await desk.filter("since:1h") == JobFilter(created_after=await store.now() - timedelta(hours=1))
