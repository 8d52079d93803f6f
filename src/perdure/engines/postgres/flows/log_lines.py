"""The newest log lines of each job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.log_lines import LINES_KEPT, LogLine, NewLine, by_job, cut
from perdure.engines.postgres.database.arrays import number_array, storable_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import moment_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params

_LOCK: Final = "FOR KEY SHARE OF l"


class LinePart:
    """Keeps the lines that jobs log."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._statements = naming.statements("flows/lines.sql")
        self._pool = pool

    async def save_lines(self, lines: Sequence[NewLine], keep: int = LINES_KEPT) -> None:
        """Keep lines of running jobs; those whose claim is lost are left out."""
        if (params := _params(lines, keep)) is not None:
            await self._pool.rows(self._statements["save_lines"], params)

    async def apply(self, lines: Sequence[NewLine], keep: int, wire: Asks) -> None:
        """The same in a transaction that ends with the acknowledgement, which is the fence: no lease is locked."""
        if (params := _params(lines, keep)) is not None:
            await wire.fetch(self._statements["save_lines"].replace(_LOCK, ""), params)

    async def lines(self, job_id: JobId, limit: int = LINES_KEPT, after: int = 0) -> list[LogLine]:
        """The newest lines of a job, the oldest of them first."""
        params: Params = {"id": job_id, "limit": limit, "after": after}
        rows = await self._pool.rows(self._statements["lines"], params)
        return [LogLine(number=number, at=at, level=level, text=text) for number, at, level, text in reversed(rows)]


def _params(lines: Sequence[NewLine], keep: int) -> Params | None:
    placed = by_job(lines, keep)
    if not placed:
        return None
    kept = [line for _, line in placed]
    return {
        "ids": text_array([line.claim.job_id for line in kept]),
        "tokens": number_array([line.claim.token for line in kept]),
        "places": number_array([place for place, _ in placed]),
        "ats": text_array([moment_text(line.at) for line in kept]),
        "levels": storable_array([line.level for line in kept]),
        "texts": storable_array([cut(line.text) for line in kept]),
        "keep": keep,
    }
