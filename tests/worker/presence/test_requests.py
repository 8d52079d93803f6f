"""A worker notices which of its jobs an operator cancels, and that it is to be quiet; without an id it asks nothing."""

from __future__ import annotations

from tests.support.builders.jobs import claim_one, employ, enqueue, only

from perdure.domain.operate.audit import By
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest
from perdure.worker.presence.requests import OperatorRequests

ADA = By("ada", "wrong customer")


async def test_requests_are_passed_on(store: Store) -> None:
    cancelled, quiet = list[CancelRequest](), list[bool]()
    requests = OperatorRequests(store, Emitter(), cancelled.append, quiet.append)
    await enqueue(store)
    worker = await employ(store)
    claim = await claim_one(store, worker)
    await store.cancel(only(claim.job_id), ADA, 10)
    await store.quiet([worker], ADA, quiet=True)
    assert (await requests.tick(), cancelled, quiet) == (0, [], []), "it has no id"
    requests.worker_id = worker
    assert await requests.tick() == 1
    assert cancelled == [CancelRequest(claim.job_id, claim.token, "wrong customer")]
    await store.quiet([worker], ADA, quiet=False)
    await requests.tick()
    assert quiet == [True, False]
