"""Names as labels: each is cut and cleaned, and beyond a limit the rest shares the label `other`.

Names come from jobs, so they are hostile text. prometheus_client escapes quotes, backslashes and line breaks; control
characters and lone surrogates are replaced here, and long names are cut. Different names may end up as the same label:
what is counted under one label is summed up before it is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perdure.domain.operate.statistics import OTHER
from perdure.signals.metrics.settings import MetricsSettings

LABEL_LIMIT_CHARACTERS: Final = 100
_CUT: Final = "…"


def clean(name: str) -> str:
    """The name as printable text of at most 100 characters; an empty one is "-"."""
    # Nearly all names are like this, and a scrape cleans all of them.
    if name.isprintable() and 0 < len(name) <= LABEL_LIMIT_CHARACTERS:
        return name
    text = "".join(sign if sign.isprintable() else "�" for sign in name[: LABEL_LIMIT_CHARACTERS + 1])
    return (text if len(text) <= LABEL_LIMIT_CHARACTERS else text[: LABEL_LIMIT_CHARACTERS - 1] + _CUT) or "-"


class Names:
    """Names that have a label of their own: the first ones that come, for the life of the process."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        """The label of a name."""
        label = clean(name)
        if label not in self._known and label != OTHER:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(label)
        return label


class Labels:
    """The labels of one exporter. A kind counts once for each queue that it is in."""

    def __init__(self, settings: MetricsSettings) -> None:
        self.queue = Names(settings.queues)
        self.kind = Names(settings.kinds)  # without a queue
        self.schedule = Names(settings.names)
        self.loop = Names(settings.names)
        self.breaker = Names(settings.names)
        self.budget = Names(settings.names)
        self._limit = settings.kinds
        self._pairs: set[tuple[str, str]] = set()
        self.declared: list[tuple[str, str]] = []
        """The labels of kinds that the app declares: their counters begin at 0, so that the first death is a change."""

    def declare(self, kinds: Iterable[tuple[str, str]]) -> None:
        """Give these queues and kinds labels of their own, before others come."""
        self.declared += [self.pair(queue, kind) for queue, kind in kinds]

    def pair(self, queue: str, kind: str) -> tuple[str, str]:
        """The labels of a queue and a kind."""
        pair = self.queue(queue), clean(kind)
        if pair in self._pairs or pair[1] == OTHER:
            return pair
        if len(self._pairs) >= self._limit:
            return pair[0], OTHER
        self._pairs.add(pair)
        return pair
