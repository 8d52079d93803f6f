"""The decisions of an SDK sampler, predicted from its description where possible.

Asking a sampler is the most expensive part of an attempt without a span. The usual samplers decide by the parent's flag
or by a share, and describe themselves in a form that OpenTelemetry specifies.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

_PARENT_BASED: Final = re.compile(
    r"ParentBased\{root:(.+?),remoteParentSampled:AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,"
)
_RATIO: Final = re.compile(r"TraceIdRatioBased\{([0-9.eE+-]+)\}")
_SHARES: Final = {"AlwaysOnSampler": 1.0, "AlwaysOffSampler": 0.0}
_TRACE_IDS: Final = 1 << 64


class Answers(Struct, frozen=True):
    """Whether to sample an attempt whose enqueue was sampled, was not, or is not known. None: ask the sampler.

    `bound`: an attempt of unknown origin is sampled if the low half of its trace id is below.
    """

    if_sampled: bool | None = None
    if_unsampled: bool | None = None
    bound: int | None = None


def answers_of(sampler: Any) -> Answers:
    """The answers of a sampler, as far as its description says."""
    described = str(sampler.get_description())
    if described in _SHARES:
        always = described == "AlwaysOnSampler"
        return Answers(always, always, _bound(_SHARES[described]))
    if (share := _share(described)) is not None:  # it does not look at parents
        return Answers(bound=_bound(share))
    if (found := _PARENT_BASED.match(described)) is not None:
        return Answers(if_sampled=True, if_unsampled=False, bound=_bound(_share(found[1])))
    return Answers()


def _share(described: str) -> float | None:
    if described in _SHARES:
        return _SHARES[described]
    found = _RATIO.fullmatch(described)
    return None if found is None else float(found[1])


def _bound(share: float | None) -> int | None:
    return None if share is None else round(share * _TRACE_IDS)
