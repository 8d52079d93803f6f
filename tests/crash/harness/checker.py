"""Compares the ledger with what the database holds, and says what must not be.

A pure function: it is given all evidence and finds every breach of these promises.

* G1, G2: a job whose enqueue returned stands in exactly one place, a final one: done, or dead because processes died
  under it as often as it allows. A job that was only wanted is there at most once. No other job is there.
* G3: a claim (job and token) is started once. Of all tokens that a job ever had, the result in the store carries the
  highest; a lower one is a stale write that was accepted. No picture of the leases shows two for one job.
* F2: every crash that is counted has its record, and every start is either the one that was accepted or has a record.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum

from tests.crash.harness.contents import Contents, Standing
from tests.crash.harness.leases import LeaseWatch
from tests.crash.harness.ledger import Book

_CRASHES = {"process crashed", "crash limit reached"}


class Breach(StrEnum):
    """What must not be."""

    LOST = "lost"
    DOUBLED = "one id, two jobs"
    INVENTED = "nobody wanted it"
    WRONG_END = "ended otherwise than it may"
    TWO_LEASES = "two live leases"
    SHARED_CLAIM = "one claim started twice"
    STALE_ACCEPTED = "stale write accepted"
    UNPROVEN = "result that no handler gave"
    UNACCOUNTED = "start without a trace"
    MISCOUNTED = "counts differ from records"


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach, and where."""

    breach: Breach
    what: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was found and what was counted."""

    findings: tuple[Finding, ...]
    figures: dict[str, int]

    @property
    def breaches(self) -> Counter[Breach]:
        """How often each promise was broken."""
        return Counter(finding.breach for finding in self.findings)

    def table(self) -> str:
        """The figures as lines of text."""
        width = max(map(len, self.figures))
        return "\n".join(f"  {name:<{width}}  {count:>7,}" for name, count in self.figures.items())

    def told(self) -> str:
        """The findings as lines of text, the first few of each kind."""
        lines = []
        for breach, count in self.breaches.items():
            some = [finding.what for finding in self.findings if finding.breach is breach][:5]
            lines.append(f"{breach} ({count}): " + "; ".join(some))
        return "\n".join(lines) or "nothing"


def check(book: Book, contents: Contents, watch: LeaseWatch) -> Report:
    """Find every breach."""
    return _Check(book, contents, watch).report()


class _Check:
    def __init__(self, book: Book, contents: Contents, watch: LeaseWatch) -> None:
        self._book = book
        self._contents = contents
        self._watch = watch
        self._findings: list[Finding] = []
        self._places: dict[str, list[Standing]] = defaultdict(list)
        for standing in contents.standings:
            self._places[standing.job].append(standing)
        self._records: dict[str, dict[int, str]] = defaultdict(dict)
        for record in contents.records:
            self._records[record.job][record.token] = record.reason
        self._started: dict[str, Counter[int]] = defaultdict(Counter)
        for run in book.starts:
            self._started[run.job][run.token] += 1
        self._ended = {(run.job, run.token) for run in book.ends}

    def report(self) -> Report:
        for job in self._book.receipts.keys() | self._book.wanted.keys() | self._contents.crash_limits.keys():
            self._check_intake(job)
        for places in self._places.values():
            if len(places) == 1:
                self._check_standing(places[0])
        for job, tokens in self._started.items():
            self._check_starts(job, tokens)
        for fault in self._watch.faults:
            self._find(Breach.TWO_LEASES, fault)
        return Report(tuple(self._findings), self._figures())

    def _check_intake(self, job: str) -> None:
        receipts, places = self._book.receipts.get(job, Counter[str]()), self._places[job]
        if job not in self._book.wanted:
            self._find(Breach.INVENTED, job)
        if len(places) > 1 or receipts["new"] > 1:
            self._find(Breach.DOUBLED, f"{job} in {[place.place for place in places]}, receipts {dict(receipts)}")
        stored = job in self._contents.crash_limits
        if receipts and not stored:
            self._find(Breach.LOST, f"{job} was acknowledged and is nowhere")
        elif stored and not (places and places[0].place == "finished"):
            self._find(Breach.LOST, f"{job} has not ended, it is {[place.state for place in places]}")

    def _check_standing(self, standing: Standing) -> None:
        job, records = standing.job, self._records[standing.job]
        crashed = sum(reason in _CRASHES for reason in records.values())
        if (standing.crashes, standing.failures) != (crashed, len(records) - crashed):
            counted = f"{standing.crashes} crashes and {standing.failures} failures"
            self._find(Breach.MISCOUNTED, f"{job} counts {counted}, recorded are {sorted(records.items())}")
        tokens = [*records, *self._started[job], self._watch.newest.get(job, 0)]
        if standing.state == "succeeded":
            token = standing.result_token
            if token is None or (job, token) not in self._ended:
                self._find(Breach.UNPROVEN, f"{job} with token {token}")
            if token is not None and (token < max(tokens) or token in records):
                self._find(Breach.STALE_ACCEPTED, f"{job} took the result of {token}, its tokens are {sorted(tokens)}")
        elif standing.state == "dead":
            limit = self._contents.crash_limits.get(job)
            if standing.reason != "crash limit reached" or standing.crashes != limit or max(tokens) not in records:
                self._find(Breach.WRONG_END, f"{job} is dead: {standing.reason}, {standing.crashes} of {limit} crashes")
        elif standing.place == "finished":
            self._find(Breach.WRONG_END, f"{job} is {standing.state}: {standing.reason}")

    def _check_starts(self, job: str, tokens: Counter[int]) -> None:
        accepted = {standing.result_token for standing in self._places[job]}
        for token, times in tokens.items():
            if times > 1:
                self._find(Breach.SHARED_CLAIM, f"{job} was started {times} times under token {token}")
            if token not in self._records[job] and token not in accepted:
                self._find(Breach.UNACCOUNTED, f"{job} under token {token}")

    def _find(self, breach: Breach, what: str) -> None:
        self._findings.append(Finding(breach, what))

    def _figures(self) -> dict[str, int]:
        states = Counter(standing.state for standing in self._contents.standings)
        breaches = Counter(finding.breach for finding in self._findings)
        return {
            "jobs wanted": len(self._book.wanted),
            "enqueues acknowledged": len(self._book.receipts),
            "jobs stored": len(self._contents.crash_limits),
            "succeeded": states["succeeded"],
            "dead by crash limit": states["dead"],
            "handlers started": len(self._book.starts),
            "jobs started more than once": sum(sum(tokens.values()) > 1 for tokens in self._started.values()),
            "crashes recorded": sum(record.reason in _CRASHES for record in self._contents.records),
            "workers that lost their lease": self._book.lost_workers,
            "acknowledgements repeated after a lost answer": self._book.unsure,
            "pictures of the leases": self._watch.pictures,
            "lost": breaches[Breach.LOST],
            "two live leases": breaches[Breach.TWO_LEASES] + breaches[Breach.SHARED_CLAIM],
            "stale writes tried": self._book.stale.total(),
            "stale writes accepted": breaches[Breach.STALE_ACCEPTED],
            "other breaches": len(self._findings)
            - sum(
                breaches[each] for each in (Breach.LOST, Breach.TWO_LEASES, Breach.SHARED_CLAIM, Breach.STALE_ACCEPTED)
            ),
        }
