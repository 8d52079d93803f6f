"""The fetcher starts nothing that was claimed under an id that is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tests.support.bench import a_claim

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.records import Wanted
from perdure.worker.claiming.fetcher import Fetcher, FetchOwner
from perdure.worker.claiming.slots import Slots
from perdure.worker.settings import Queue


async def test_what_was_claimed_under_an_id_that_is_lost_is_given_back_and_not_started() -> None:
    started, back, claim = list[Claim](), list[Claim](), a_claim("plain")

    class Losing:
        async def claim(self, _: WorkerId, __: Sequence[Wanted]) -> list[Claim]:
            fetcher.worker_id = None
            return [claim]

    slots = Slots((Queue("default"),), 10, 10)
    owner = FetchOwner(start=started.extend, give_back=back.extend, poll=lambda: 1.0)
    fetcher = Fetcher(cast("Store", Losing()), slots, Emitter(), owner)
    fetcher.worker_id = WorkerId(1)
    await fetcher._fill()
    assert (started, back) == ([], [claim])
