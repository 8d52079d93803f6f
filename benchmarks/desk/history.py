"""What the database of the benchmark holds: a million jobs of two days, one in ten dead, and statistics of a week.

Jobs are written by SQL in the order of their ids, because the way through a worker would take an hour. What operators
see of them is as a worker leaves it: places, attempts, fingerprints and groups of failures. The jobs that are drained
while the desk is measured are enqueued by the worker itself, in another queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from perdure.domain.operate.statistics import BUCKETS, Ending
from perdure.policy.fingerprints import fingerprint
from perdure.storage.operate.statistics import Counted, Flush
from perdure.storage.port import Store

QUEUES: Final = ("default", "mail", "payments", "reports", "imports")
KINDS: Final = ("charge_card", "send_mail", *(f"kind_{number:02}" for number in range(2, 50)))
GROUPS: Final = 200
LENGTH: Final = timedelta(hours=40)
ATTEMPTS: Final = 2  # that are kept of each dead letter and each job that is retried
NEVER: Final = timedelta(days=365)  # when parked jobs are due
ERROR: Final = "TimeoutError"
WRITERS: Final = 8
_MINUTE: Final = timedelta(minutes=1)
_LINE: Final = (
    '  File "/srv/shop/jobs/gateway.py", line 212, in call\\n    return await self.session.post(url, json=body)\\n'
)
TRACEBACK: Final = "Traceback (most recent call last):\\n" + 5 * _LINE
"""About 600 characters, as they stand between quotes in SQL."""


def groups(now: datetime) -> list[dict[str, Any]]:
    """The groups of failures, as rows for SQL. Group n has kind n % 50, and the first have most of the dead letters."""
    rows = []
    for number in range(GROUPS):
        kind, message = KINDS[number % len(KINDS)], f"{_service(number)} did not answer in 30 s"
        found = fingerprint(kind, ERROR, message)
        rows.append(
            {
                "number": number,
                "fingerprint": found.hash,
                "kind": kind,
                "type": ERROR,
                "said": message,
                "message": found.message,
                "first_at": now - LENGTH,
                "last_at": now - number * _MINUTE,
            }
        )
    return rows


def _service(number: int) -> str:
    """A word without digits, which a fingerprint would take out."""
    return "service " + "".join(chr(ord("a") + int(digit)) for digit in str(number))


async def write_statistics(store: Store, now: datetime) -> None:
    """What workers would have counted in a week: every stretch that a page reads is there for each kind and queue."""
    for number, minute in enumerate(_minutes(now)):
        await store.add_statistics(Flush(f"history {number % WRITERS}", number + 1, tuple(_counts(minute))))
    while await store.roll_up_statistics():
        pass


def _minutes(now: datetime) -> Iterator[datetime]:
    """Each minute of the last hour, one of each quarter of the last day, and one of each hour of the last week."""
    now = now.replace(second=0, microsecond=0) - 2 * _MINUTE
    yield from (now - place * 60 * _MINUTE for place in range(168, 24, -1))
    yield from (now - place * 15 * _MINUTE for place in range(96, 4, -1))
    yield from (now - place * _MINUTE for place in range(60, -1, -1))


def _counts(minute: datetime) -> Iterator[Counted]:
    histogram = tuple(5 if 3 <= bucket < 9 else 0 for bucket in range(BUCKETS))
    for number, kind in enumerate(KINDS):
        for ending in (Ending.SUCCEEDED, Ending.RETRIED):
            yield Counted(
                minute=minute,
                queue=QUEUES[number % len(QUEUES)],
                kind=kind,
                ending=ending,
                jobs=30,
                waited=1.0,
                ran=1.0,
                waits=histogram,
                runs=histogram,
            )
