"""Jobs with a fair key come in through the caller's connection as any others do."""

from __future__ import annotations

from tests.support.builders.jobs import a_worker
from tests.transactions.conftest import Setting, greet

from perdure.storage.records import Wanted


async def test_fair_jobs_are_stored_with_the_callers_transaction_and_take_turns(setting: Setting) -> None:
    fairly = setting.app.job(name="fairly", fair="name")(greet)
    async with setting.open() as caller:
        await setting.enqueue_many(caller, [fairly.call("gone") for _ in range(3)])
        await caller.rollback()
    assert await setting.jobs() == 0
    async with setting.open() as caller:
        await setting.enqueue_many(caller, [fairly.call("big") for _ in range(30)])
        await setting.enqueue_many(caller, [fairly.call("small")])
        await setting.note(caller, "with them")
        await caller.commit()
    assert (await setting.jobs(), await setting.notes()) == (31, ["with them"])
    store = await setting.app.store()
    claims = await store.claim(await store.register(a_worker()), [Wanted("default", 4)])
    assert sorted(claim.args for claim in claims) == ['{"name":"big"}'] * 3 + ['{"name":"small"}']
