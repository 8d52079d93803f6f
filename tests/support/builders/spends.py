"""Spends behind the port: as the release writes and reads them that knows nothing of sums."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from tests.support.databases.behind import query

from perdure.domain.gate import BudgetCheck, GateChanges, GateRequest, GateState, Held
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.job import Claim
from perdure.engines.shared.database.instants import to_micros
from perdure.storage.port import Store


class Neighbour:
    """The release before, on the same database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_sqlite = url.startswith("sqlite")

    def add(self, at: datetime, amount: float, name: str = "ai", job_id: JobId | None = None) -> None:
        """Write what was spent at an instant."""
        self._insert(at, amount, name, job_id or new_job_id(), is_estimate=False)

    def estimate(self, at: datetime, amount: float, job_id: JobId, name: str = "ai") -> None:
        """Write an estimate, in place of the one that the job has."""
        where = "is_estimate = 1" if self._is_sqlite else "is_estimate"
        conflict = f" ON CONFLICT (name, job_id) WHERE {where} DO UPDATE SET at = excluded.at, amount = excluded.amount"
        self._insert(at, amount, name, job_id, is_estimate=True, conflict=conflict)

    def settle(self, at: datetime, amount: float, job_id: JobId, name: str = "ai") -> None:
        """Write what was spent in place of the estimate."""
        where = f"name = '{name}' AND job_id = '{job_id}' AND is_estimate = {self._flag(is_set=True)}"
        query(
            self._url,
            f"UPDATE {{spend}} SET at = {self._moment(at)}, amount = {amount}, is_estimate = {self._flag(is_set=False)}"
            f" WHERE {where}",
        )

    async def sum_estimates(self, store: Store) -> int:
        """Sum everything, estimates as well, as the release before does; how many were summed."""
        is_estimate, are = "is_estimate" if not self._is_sqlite else "is_estimate = 1", self._flag(is_set=True)
        ids = ", ".join(str(row[0]) for row in query(self._url, f"SELECT id FROM {{spend}} WHERE {is_estimate}")) or "0"
        query(self._url, f"UPDATE {{spend}} SET is_estimate = {self._flag(is_set=False)} WHERE id IN ({ids})")
        summed = await sum_all(store)
        query(self._url, f"UPDATE {{spend}} SET is_estimate = {are} WHERE id IN ({ids})")
        return summed

    def total(self, since: datetime, name: str = "ai") -> float:
        """Add up what was spent since then."""
        where = f"name = '{name}' AND at > {self._moment(since)}"
        [[total]] = query(self._url, f"SELECT coalesce(sum(amount), 0) FROM {{spend}} WHERE {where}")
        return float(total)

    def _insert(
        self, at: datetime, amount: float, name: str, job_id: JobId, *, is_estimate: bool, conflict: str = ""
    ) -> None:
        row = f"'{name}', {self._moment(at)}, {amount}, '{job_id}', {self._flag(is_set=is_estimate)}"
        query(self._url, f"INSERT INTO {{spend}} (name, at, amount, job_id, is_estimate) VALUES ({row}){conflict}")

    def _moment(self, at: datetime) -> str:
        return str(to_micros(at)) if self._is_sqlite else f"'{at.isoformat()}'::timestamptz"

    def _flag(self, *, is_set: bool) -> str:
        return str(int(is_set)) if self._is_sqlite else str(is_set).lower()


async def totals_at_gate(
    store: Store, claim: Claim, windows: Sequence[timedelta], name: str = "ai"
) -> dict[timedelta, float]:
    """What a gatekeeper is told of a budget's windows."""
    told: list[GateState] = []

    def look(state: GateState) -> tuple[list[Held | None], GateChanges]:
        told.append(state)
        return [None], GateChanges()

    check = BudgetCheck(name, 0, tuple((window, 1e9) for window in windows))
    await store.pass_gates([GateRequest(claim=claim, budgets=(check,))], look)
    return dict(told[-1].spending[name].totals)


async def sum_all(store: Store, limit: int = 1_000) -> int:
    """Sum until all is summed that can be; how many spends."""
    total = 0
    while summed := await store.sum_spends(limit):
        total += summed
    return total


def sums_differ(url: str) -> list[tuple[object, ...]]:
    """Which sums are not what the spends say that are in them."""
    is_sqlite = url.startswith("sqlite")
    begins = "s.summed_at - s.summed_at % m.span" if is_sqlite else "date_bin(m.span, s.summed_at, timestamptz 'epoch')"
    return query(
        url,
        f"""
        SELECT m.name, m.span, m.at, m.amount, m.number, sum(s.summed_amount), count(s.summed_at)
        FROM {{spend_sum}} m LEFT JOIN {{spend}} s ON s.name = m.name AND m.at = {begins}
        GROUP BY m.name, m.span, m.at, m.amount, m.number
        HAVING m.number <> count(s.summed_at) OR m.amount <> coalesce(sum(s.summed_amount), 0)
        """,
    )
