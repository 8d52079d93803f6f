"""Chains: calls that run one after the other, each made when the previous one has succeeded.

A chain is a parent like any other, with a family of one child for each link: `stage`, `stage#2`, and so on. Its handler
makes the first link and parks. From then on the engine makes the next link in the transaction that records the success
of the previous one, and the chain stays parked; it resumes when the last link is done, or one has failed. So each link
costs the same, no matter how many there are.

If the handler runs in between (the chain was requeued or run by an operator, or the next link needs checks that the
engine cannot do), it continues from its cursor, which is stored in the transaction that makes a link. A crash at any
point leaves either the old cursor and no new link, or both.

A chain does not know the kinds of its links: results pass from one to the next as JSON.
"""

from __future__ import annotations

from typing import NoReturn

from msgspec import Raw, json

from perdure.domain.flows.flow import Child
from perdure.domain.flows.plan import Planned, link, link_key
from perdure.domain.jobs.outcome import Parked
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.verdicts import Permanent, Verdict
from perdure.errors import ChildrenFailed, FailedChild, StepError
from perdure.events import FamilyRecovered, FamilySettled
from perdure.flows.families.spawning import refuse_too_deep, store_family
from perdure.flows.journal import Journal


async def run_chain(journal: Journal, links: int) -> Raw:
    """Run these links one after the other; returns the result of the last one."""
    chain = _Chain(journal, links)
    cursor = journal.claim.cursor
    number = 0 if cursor is None else json.decode(cursor, type=int)
    is_back = cursor is not None
    before: str | None = None
    async with journal.busy():
        while number < links:
            child = await chain.child(number)
            if child is None:
                if is_back:
                    raise StepError(link_key(number), "cannot go on: its job cannot be found; enqueue the chain again")
                await chain.make(number, before)
                await chain.wait(number)
            if child.fate is None:
                if is_back:
                    await chain.report_stay(number)
                await chain.wait(number)
            await chain.check(number, child)
            number, before, is_back = number + 1, child.result, False
    return Raw((before or "null").encode())


def ends_chain(error: BaseException) -> Verdict | None:
    """A chain with a failed link is dead: a retry would find the same failure."""
    return Permanent(str(error)) if isinstance(error, ChildrenFailed) else None


class _Chain:
    """The links of one chain."""

    def __init__(self, journal: Journal, links: int) -> None:
        self._journal = journal
        self._links = links
        self._id = journal.claim.job_id

    async def child(self, number: int) -> Child | None:
        """The status of a link; None: it is not made yet."""
        key = link_key(number)
        found = await self._journal.ask("read link", lambda store: store.children(self._id, key, 0, 1))
        return found[0] if found else None

    async def make(self, number: int, before: str | None) -> None:
        """Make a link, with the result of the previous one."""
        await refuse_too_deep(self._journal, link_key(number))
        document = await self._journal.ask("read plan", lambda store: store.planned(self._id, number))
        if document is None:
            raise StepError(link_key(number), "cannot go on: its plan cannot be found; enqueue the chain again")
        plan, is_last = json.decode(document, type=Planned), number + 1 == self._links
        await store_family(self._journal, link(self._id, number, plan, before, is_last=is_last))

    async def wait(self, number: int) -> NoReturn:
        """Park until a link has failed, or the last one is done."""
        await self._journal.park(Parked(Reason.AWAITING_CHILDREN.value, family=link_key(number)))

    async def report_stay(self, number: int) -> None:
        """Report that the chain resumed before its link was final."""
        claim, decision, because = self._journal.claim, "stays in aggregate", "its children are there"
        await self._journal.emit(FamilyRecovered(claim.job_id, claim.kind, link_key(number), decision, because, 1))

    async def check(self, number: int, child: Child) -> None:
        """Report that a link is final; raises ChildrenFailed if it has not succeeded."""
        claim, key, good = self._journal.claim, link_key(number), int(child.fate is JobState.SUCCEEDED)
        await self._journal.emit(FamilySettled(claim.job_id, claim.kind, key, 1, good, 1 - good, "all are final"))
        if not good:
            failed = FailedChild(child.number, child.job_id, str(child.fate), child.error)
            raise ChildrenFailed(key, (failed,), (None,))
