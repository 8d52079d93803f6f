"""The stored starts of a rate's key: instants in microseconds, each with the number of starts.

All of a key are in one row, `[at, count, at, count, …]`, oldest first: a start costs one small write, and leaves
nothing to sweep. Where there are many instants, neighbours are joined. The earlier one then counts as if it had been as
late as the later one: a rate is never exceeded, and at worst used a little less than it might be. Up to
`_EXACT_STARTS` starts nothing is joined. Starts with a future time come from a clock that was set back: they have
happened, so they are redated to now, and count no longer than others. Far below a larger limit two instants are enough:
new starts move the last one along until the one before has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Final

from msgspec import json

from perdure.domain.gate import LoanKey, Start
from perdure.engines.shared.database.instants import from_micros, span
from perdure.engines.shared.gates.needs import GATES_KEPT, NO_JOB, RateNeed

_EXACT_STARTS: Final = 128  # a limit up to this is kept to the microsecond
_INSTANTS_BEFORE_JOINING: Final = 256  # from so many instants on they are joined
_PARTS_PER_SPAN: Final = 128  # of a stretch: what lies within one of them is joined
_FAR_BELOW_LIMIT_FACTOR: Final = 8  # times what is used is less than the limit
_NUMBERS_PER_START: Final = 2  # an instant and its count
_KEPT: Final = span(GATES_KEPT)
_encoder: Final = json.Encoder()

Tally = tuple[str, int, int, list[int]]
"""A key, how long its starts count for any kind, until when it is remembered, and its starts."""


class Tallies:
    """The tallies of a batch's rates at one instant; a new key has an empty one."""

    def __init__(self, lines: Mapping[str, RateNeed], known: Iterable[Tally], now: int) -> None:
        self._lines = lines
        self._now = now
        self._kept = {key: (kept_for, until) for key, kept_for, until, _ in known}
        self._starts = {key: starts for key, _, _, starts in known}
        self._met: dict[str, list[int]] = {}
        self._stale: dict[str, tuple[int, int]] = {}
        self.ahead: set[str] = set()
        """Keys with redated starts: these must be written."""
        looked_back, asked = timedelta(0), 0  # most often the same for all
        for key, line in lines.items():
            if line.span is not looked_back:
                looked_back, asked = line.span, span(line.span)
            kept_for, until = self._kept.get(key, (asked, 0))
            if kept_for < asked or until < now + kept_for + _KEPT // 2:
                kept_for = max(kept_for, asked)
                self._kept[key] = self._stale[key] = kept_for, now + kept_for + _KEPT
            starts = self._starts.setdefault(key, [])
            if starts and starts[-2] > now:
                starts = self._starts[key] = _redated(starts, now)
                self.ahead.add(key)
            self._met[key] = starts if not starts or starts[0] > now - asked else _after(starts, now - asked)

    @property
    def stale(self) -> list[tuple[str, int, int]]:
        """Keys whose record must be renewed: how long their starts count, and until when they are remembered.

        A key's starts count for the longest window of all recent requests for it.
        """
        return [(key, *kept) for key, kept in self._stale.items()]

    @property
    def watched(self) -> frozenset[str]:
        """The keys whose starts different kinds count over different windows."""
        shortest = {length: span(length) for length in {line.shortest for line in self._lines.values()}}
        return frozenset([key for key, line in self._lines.items() if self._kept[key][0] > shortest[line.shortest]])

    def kept_for(self, key: str) -> int:
        """For how long the starts of a key are kept."""
        return self._kept[key][0]

    def starts(self, lined: Collection[str], lent: Mapping[LoanKey, int]) -> dict[str, list[Start]]:
        """The starts that count for these requests: for each key with waiting jobs, or with many starts.

        So many of each are lent, which is as if they had begun.

        Of the others it is enough to know that they are few.
        """
        found: dict[str, list[Start]] = {}
        in_all = dict[str, int]()
        for (key, _), number in lent.items():
            in_all[key] = in_all.get(key, 0) + number
        for key, met in self._met.items():
            is_listed = key in lined or sum(met[1::2]) + in_all.get(key, 0) >= self._lines[key].least
            found[key] = _each(key, met) if is_listed else []
        return found

    def after(self, begun: Mapping[str, int]) -> list[tuple[str, str]]:
        """The starts of each key, once so many begin now, as they are to be kept."""
        return [(key, _encoder.encode(self._with(key, count)).decode()) for key, count in begun.items()]

    def _with(self, key: str, count: int) -> list[int]:
        starts, now = self._starts[key], self._now
        if starts and starts[0] <= now - self._kept[key][0]:
            starts = _after(starts, now - self._kept[key][0])
        line = self._lines[key]
        if starts and starts[-2] == now:  # a batch of the same instant
            return [*starts[:-1], starts[-1] + count]
        if len(starts) <= _NUMBERS_PER_START:
            return [*starts, now, count]
        if line.fewest <= _EXACT_STARTS:
            return _joined([*starts, now, count], now - span(line.shortest), self._kept[key][0] // _PARTS_PER_SPAN)
        if _FAR_BELOW_LIMIT_FACTOR * (sum(starts[1::2]) + line.asking) < line.fewest:
            return [*starts[:2], now, sum(starts[3::2]) + count]
        return _joined([*starts, now, count], now, span(line.shortest) // _PARTS_PER_SPAN)


def _redated(starts: list[int], now: int) -> list[int]:
    """The same starts, with future ones redated to now."""
    count = 2 * _place(starts, now)
    return [*starts[:count], now, sum(starts[count + 1 :: 2])]


def _each(key: str, starts: list[int]) -> list[Start]:
    found: list[Start] = []
    for at, count in zip(starts[::2], starts[1::2], strict=True):
        found += [Start(key, from_micros(at), NO_JOB, True)] * count
    return found


def _joined(starts: list[int], until: int, within: int) -> list[int]:
    """If there are too many instants, join those before one that lie so close together."""
    if len(starts) <= 2 * _INSTANTS_BEFORE_JOINING:
        return starts
    count = 2 * _place(starts, until)
    joined: list[int] = []
    begins = 0
    for at, number in zip(starts[:count:2], starts[1:count:2], strict=True):
        if joined and at - begins < within:
            joined[-2:] = [at, joined[-1] + number]
        else:
            joined += [at, number]
            begins = at
    return joined + starts[count:]


def _after(starts: list[int], since: int) -> list[int]:
    return starts[2 * _place(starts, since + 1) :]


def _place(starts: list[int], at: int) -> int:
    """How many instants lie before this one."""
    low, high = 0, len(starts) // 2
    while low < high:
        middle = (low + high) // 2
        if starts[2 * middle] < at:
            low = middle + 1
        else:
            high = middle
    return low
