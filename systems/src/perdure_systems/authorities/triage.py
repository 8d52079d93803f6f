"""What an authority's word about an order means (D3).

| answer | means |
|---|---|
| issued, completed | done |
| pending, processing, applied, awaiting approval, and any word that is not known | still pending |
| rejected, denied, failed, revoked, expired, not enrolled | done, failed: `Rejected` |
| a body that cannot be read | error: `Unreadable` |
| issued without a certificate | error: `CertificateMissing` |
| 4xx other than 429 | error at once |
| 429, 5xx, network, TLS | still pending, after Retry-After if that is longer than the usual wait |

The last two lines are `HTTP`, which perdure brings; each connector has its own words for the others.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from perdure import HttpTriage, Pending
from perdure_systems.authorities.failures import Rejected

HTTP: Final = HttpTriage()


class Meaning(StrEnum):
    """What a status word means."""

    ISSUED = "issued"
    PENDING = "pending"
    FAILED = "failed"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """An authority's own words for the three things that an order can be, beside those that all of them use."""

    issued: frozenset[str]
    pending: frozenset[str]
    failed: frozenset[str]

    def meaning(self, word: str) -> Meaning:
        """What a word means, in any case; one that is not known means pending (D10)."""
        if word.casefold() in self.issued:
            return Meaning.ISSUED
        return Meaning.FAILED if word.casefold() in self.failed else Meaning.PENDING

    def require_issued(self, who: str, order: str, word: str) -> None:
        """Return if the order is issued; else raise what its status means."""
        match self.meaning(word):
            case Meaning.FAILED:
                raise Rejected(f"{who} will not issue order {order}: its status is {word[:50]!r}")
            case Meaning.PENDING:
                known = "" if word.casefold() in self.pending else ", which is not a status we know"
                raise Pending(message=f"order {order} is {word[:50]!r} at {who}{known}")
            case Meaning.ISSUED:
                return


def words(issued: str, pending: str, failed: str) -> Words:
    """The words of one authority, from texts in which they are separated by commas."""
    return Words(
        issued=_split("issued, completed", issued),
        pending=_split("pending, processing", pending),
        failed=_split("rejected, denied, failed", failed),
    )


def _split(*texts: str) -> frozenset[str]:
    return frozenset(word.strip().casefold() for text in texts for word in text.split(","))
