"""The next link of a chain, made in the transaction in which the link before it succeeds."""

from __future__ import annotations

from msgspec import json

from perdure.domain.flows.flow import Awaits
from perdure.domain.flows.plan import Planned, link, link_key
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.flows.families import FamilyPart
from perdure.engines.sqlite.intake.insertion import check_texts
from perdure.errors import ArgumentError


class Linking:
    """Continues chains that wait only for their last link."""

    def __init__(self, database: Database, families: FamilyPart) -> None:
        self._sql = database.statements("flows/linking.sql")
        self._families = families

    def go_on(self, transaction: Transaction, chain: JobId, key: str, number: int) -> NewJob | None:
        """Make the link of this number after the one of `key`. None: the chain must come back and do it itself."""
        params = {
            "chain": chain,
            "family": key,
            "awaits": str(Awaits(family=key)),
            "number": number,
            "next_family": link_key(number),
        }
        rows = transaction.run(self._sql["next_link"], params)
        if not rows:
            return None
        ((document, before, is_last),) = rows
        plan = json.decode(document, type=Planned)
        if plan.unique is not None:  # the chain may learn that its key is held
            return None
        family = link(chain, number, plan, before, is_last=bool(is_last))
        (job,) = family.children
        try:
            check_texts(job)
        except ArgumentError:  # the end of a link is recorded with any result
            return None
        self._families.make(transaction, chain, family)
        transaction.change(self._sql["sleep_on"], {"chain": chain, "awaits": str(Awaits(family=family.key))})
        return job
