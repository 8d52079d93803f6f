"""The next link of a chain, made in the transaction in which the link before it succeeds."""

from __future__ import annotations

from msgspec import json

from perdure.domain.flows.flow import Awaits
from perdure.domain.flows.plan import Planned, link, link_key
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.engines.postgres.database.encoding import encode_one
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params
from perdure.engines.postgres.flows.families import FamilyPart
from perdure.errors import ArgumentError


class Linking:
    """Continues chains that wait only for their last link. The family of that link must be locked."""

    def __init__(self, naming: Naming, families: FamilyPart) -> None:
        self._statements = naming.statements("flows/linking.sql")
        self._channel = naming.channel
        self._families = families

    async def go_on(self, wire: Asks, chain: JobId, key: str, number: int) -> NewJob | None:
        """Make the link of this number after the one of `key`. None: the chain must come back and do it itself."""
        params: Params = {
            "id": chain,
            "family": key,
            "awaits": str(Awaits(family=key)),
            "number": number,
            "next_family": link_key(number),
        }
        rows = await wire.fetch(self._statements["next_link"], params)
        if not rows:
            return None
        [[document, before, is_last]] = rows
        plan = json.decode(document, type=Planned)
        if plan.unique is not None:  # the chain may learn that its key is held
            return None
        family = link(chain, number, plan, before, is_last=is_last)
        (job,) = family.children
        try:
            encode_one(job, None)
        except ArgumentError:  # the end of a link is recorded with any result
            return None
        await self._families.make(wire, chain, family)
        sleep: Params = {
            "id": chain,
            "awaits": str(Awaits(family=family.key)),
            "channel": self._channel,
            "queue": job.queue,
        }
        await wire.fetch(self._statements["sleep_on"], sleep)
        return job
