"""Planned jobs."""

from __future__ import annotations

import json

from tests.support.builders.jobs import HOUR, a_job, numbered_id

from perdure.domain.flows.child_ids import child_ids
from perdure.domain.flows.plan import Planned, link, link_key, planned

CHAIN = numbered_id(1)


def test_a_planned_job_is_made_as_it_was_but_for_its_id() -> None:
    job = a_job(queue="mail", priority=2, delay=HOUR, tags=("eu",), meta='{"n":1}', fair_key="ada")
    made = planned(job).made(CHAIN)
    assert made == a_job(id=CHAIN, queue="mail", priority=2, delay=HOUR, tags=("eu",), meta='{"n":1}', fair_key="ada")


def test_the_previous_result_fills_its_parameter_and_no_other() -> None:
    plan = planned(a_job(args='{"name":"Ada","number":1.10}'), fills="before")
    assert json.loads(plan.made(CHAIN, '{"a":[1]}').args) == {"name": "Ada", "number": 1.1, "before": {"a": [1]}}
    assert '"number":1.10' in plan.made(CHAIN, "1").args
    assert json.loads(plan.made(CHAIN).args)["before"] is None


def test_each_link_of_a_chain_names_the_next_and_the_last_none() -> None:
    plan = Planned(kind="greet", args="{}")
    links = [link(CHAIN, number, plan, None, is_last=number == 2) for number in range(3)]
    assert [(each.key, each.cursor, each.next_link) for each in links] == [
        ("stage", "0", 1),
        ("stage#2", "1", 2),
        ("stage#3", "2", None),
    ]
    assert [each.children[0].id for each in links] == [
        next(child_ids(CHAIN, link_key(number), 1)) for number in range(3)
    ]
