"""The ids of children, made from what they are: the same child has the same id whoever asks, and however often.

So a parent that is run again, or that does not know whether its children were stored, can spawn them once more and
spawns nothing twice. An id is a UUID of version 8: the parent's first 48 bits (its time, as a rule, so that children
stand near it in every index), 54 bits of a digest of parent and family, and the child's number, which keeps the
children of one family together and in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from perdure.domain.jobs.ids import JobId

MOST_CHILDREN: Final = 100_000
_VARIANT: Final = "89ab"
_TIME: Final = len("00000000-0000")


def child_ids(parent: JobId, family: str, count: int) -> Iterator[JobId]:
    """The ids of the first `count` children of a family, in their order."""
    digest = blake2b(f"{parent}/{family}".encode(), digest_size=8).hexdigest()
    head = f"{parent[:_TIME]}-8{digest[:3]}-{_VARIANT[int(digest[3], 16) & 3]}{digest[4:7]}-{digest[7:14]}"
    for number in range(count):
        yield JobId(f"{head}{number:05x}")
