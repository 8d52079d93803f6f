"""The newest log lines of each job."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.log_lines import LINES_KEPT, LogLine, NewLine, by_job, cut
from perdure.engines.shared.database.instants import from_micros, to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, to_document
from perdure.engines.sqlite.database.transaction import Transaction


class LinePart:
    """Log lines of the store's jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("flows/lines.sql")

    async def save_lines(self, lines: Sequence[NewLine], keep: int = LINES_KEPT) -> None:
        """Keep lines of claims that are held, as one document."""
        if lines and keep > 0:
            await self._database.write(lambda transaction: self.apply(transaction, lines, keep))

    def apply(self, transaction: Transaction, lines: Sequence[NewLine], keep: int) -> None:
        """The same, in an open transaction."""
        if not lines or keep <= 0:
            return
        rows = to_document([_row(place, line) for place, line in by_job(lines, keep)])
        transaction.change(self._sql["save"], {"rows": rows})
        transaction.change(self._sql["drop_old"], {"rows": rows, "keep": keep})

    async def lines(self, job_id: JobId, limit: int = LINES_KEPT, after: int = 0) -> list[LogLine]:
        """The newest lines of a job, the oldest of them first."""
        params = {"job_id": job_id, "limit": limit, "after": after}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["lines"], params))
        return [
            LogLine(number=number, at=from_micros(at), level=level, text=text) for number, at, level, text in rows[::-1]
        ]


def _row(place: int, line: NewLine) -> tuple[str, int, int, int, str, str]:
    claim = line.claim
    return claim.job_id, claim.token, place, to_micros(line.at), clean(line.level), clean(cut(line.text))
