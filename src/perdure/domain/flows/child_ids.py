"""The ids of children, derived from parent, family and number: the same child always has the same id.

So a parent that runs again, or does not know whether its children were stored, can spawn them again without creating
duplicates. An id is a UUID of version 8: the parent's first 48 bits (usually its time, so that children stand near it
in every index), 54 bits of a digest of parent and family, and the child's number, which keeps the children of one
family together and in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from perdure.domain.jobs.ids import JobId

CHILDREN_LIMIT: Final = 100_000
_VARIANT: Final = "89ab"
_TIME_CHARACTERS: Final = len("00000000-0000")


def child_ids(parent: JobId, family: str, count: int) -> Iterator[JobId]:
    """The ids of the first `count` children of a family, in order."""
    digest = blake2b(f"{parent}/{family}".encode(), digest_size=8).hexdigest()
    head = f"{parent[:_TIME_CHARACTERS]}-8{digest[:3]}-{_VARIANT[int(digest[3], 16) & 3]}{digest[4:7]}-{digest[7:14]}"
    for number in range(count):
        yield JobId(f"{head}{number:05x}")
