"""FlowStore, chains: a link that succeeds makes the next one in its own transaction, and the chain sleeps on."""

from __future__ import annotations

import pytest
from msgspec import json
from tests.support.builders.families import CHILDREN, awaiting, claim_children, standing
from tests.support.builders.jobs import A_FAILURE, DAY, a_job, apply, claim_one, employ, only, show, start, state_of

from perdure.clock import ManualClock
from perdure.domain.flows.child_ids import child_ids
from perdure.domain.flows.plan import Planned, link, link_key
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Keep

LINKS = 3
PLAN = tuple(
    Planned(kind="load", args=json.encode({"number": number}).decode(), queue=CHILDREN, fills="result")
    for number in range(LINKS)
)
DOCUMENTS = tuple(json.encode(plan).decode() for plan in PLAN)


async def start_chain(store: Store) -> Claim:
    """A running chain whose first link is made."""
    chain = await start(store, kind="chain", plan=DOCUMENTS)
    assert await store.spawn(chain, link(chain.job_id, 0, PLAN[0], "null", is_last=False))
    return chain


async def sleeping_chain(store: Store) -> JobId:
    """A chain that waits for its first link."""
    chain = await start_chain(store)
    await apply(store, awaiting(chain, link_key(0)))
    return chain.job_id


async def run_link(store: Store, result: str = "1") -> JobId:
    """Run the link that is ready to its success."""
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.succeeded(claim, result, ()))
    return claim.job_id


def link_id(chain: JobId, number: int) -> JobId:
    [own] = child_ids(chain, link_key(number), 1)
    return own


async def test_a_link_that_succeeds_makes_the_next_with_its_result(store: Store) -> None:
    chain = await sleeping_chain(store)
    assert await run_link(store, '"one"') == link_id(chain, 0)
    view, made = await show(store, chain), await show(store, link_id(chain, 1))
    assert (view.state, view.awaits, view.cursor) == (JobState.WAITING, "family:stage#2", "1")
    assert (made.state, made.parent, json.decode(made.args)) == (
        JobState.READY,
        chain,
        {"number": 1, "result": "one"},
    )
    assert await store.job(link_id(chain, 2)) is None


async def test_the_last_link_wakes_the_chain(store: Store) -> None:
    chain = await sleeping_chain(store)
    for _ in range(LINKS):
        assert await state_of(store, chain) is JobState.WAITING
        await run_link(store)
    assert await standing(store, chain) == ("ready", "children settled")
    assert [family.key for family in await store.families(chain)] == ["stage", "stage#2", "stage#3"]
    assert [family.succeeded for family in await store.families(chain)] == [1, 1, 1]


async def test_a_link_that_fails_wakes_the_chain_and_nothing_is_made(store: Store) -> None:
    chain = await sleeping_chain(store)
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.died(claim, Reason.PERMANENT, A_FAILURE))
    assert await standing(store, chain) == ("ready", "children settled")
    assert len(await store.families(chain)) == 1


async def test_a_chain_that_does_not_wait_makes_the_next_link_itself(store: Store) -> None:
    """It may be about to: were both to make it, there would be two."""
    chain = await start_chain(store)
    await run_link(store)
    assert await store.job(link_id(chain.job_id, 1)) is None
    await apply(store, awaiting(chain, link_key(0)))
    assert await standing(store, chain.job_id) == ("ready", "children settled")


async def test_a_stale_claim_makes_no_link(store: Store, clock: ManualClock) -> None:
    chain = await sleeping_chain(store)
    [lost] = (await claim_children(store)).values()
    await apply(store, transition.released(lost))
    [held] = (await claim_children(store)).values()
    late = await store.acknowledge([transition.succeeded(lost, '"late"', ())])
    assert (late.applied, await store.job(link_id(chain, 1))) == (0, None)
    await apply(store, transition.succeeded(held, '"held"', ()))
    assert json.decode((await show(store, link_id(chain, 1))).args)["result"] == "held"


async def test_a_cancelled_chain_takes_its_link_with_it_and_goes_no_further(store: Store) -> None:
    chain = await sleeping_chain(store)
    await run_link(store)
    assert await store.cancel(only(chain), By("test", "enough"), 1) == [chain]
    assert await standing(store, link_id(chain, 1)) == ("cancelled", "cancelled: parent job cancelled")
    assert await claim_children(store) == {}
    assert await store.job(link_id(chain, 2)) is None


async def test_a_requeued_link_goes_on_once_the_chain_waits_again(store: Store) -> None:
    chain = await sleeping_chain(store)
    [claim] = (await claim_children(store)).values()
    await apply(store, transition.died(claim, Reason.PERMANENT, A_FAILURE))
    back = await claim_one(store, await employ(store))
    await store.requeue(only(claim.job_id), By("test"), 1)
    await apply(store, awaiting(back, link_key(0)))
    await run_link(store)
    assert (await show(store, chain)).awaits == "family:stage#2"
    assert await state_of(store, link_id(chain, 1)) is JobState.READY


@pytest.mark.parametrize("way", ["delete", "purge", "prune"])
async def test_a_plan_is_forgotten_with_its_job(store: Store, clock: ManualClock, way: str) -> None:
    claim = await start(store, plan=DOCUMENTS)
    assert [await store.planned(claim.job_id, number) for number in (0, 2, 3)] == [DOCUMENTS[0], DOCUMENTS[2], None]
    await apply(store, transition.succeeded(claim, None, ()))
    clock.move(DAY)
    if way == "prune":
        every = dict.fromkeys(("succeeded", "dead", "cancelled"), DAY / 2)
        assert await store.prune(Keep(**every), 10) == 1
    else:
        assert await getattr(store, way)(only(claim.job_id), By("test"), 1) == [claim.job_id]
    assert await store.planned(claim.job_id, 0) is None


async def test_a_job_that_is_known_already_keeps_its_own_plan(store: Store) -> None:
    first = a_job(plan=DOCUMENTS, has_own_id=True)
    await store.insert([first])
    await store.insert([a_job(id=first.id, plan=DOCUMENTS[:1], has_own_id=True), a_job(plan=DOCUMENTS[1:])])
    assert await store.planned(first.id, 2) == DOCUMENTS[2]
