"""Pulse's jobs: a document is split (ingest), each piece is a child job, and their findings are joined (aggregate).

While a parent waits for its children it occupies no worker. Each call to the model passes two gates: a rate, then a
budget. If a call may not be made now, its job is paused without using an attempt, and resumes by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import apsw
import msgspec
import psycopg

from perdure import (
    App,
    Backoff,
    BudgetExceeded,
    CancelJob,
    ChildResult,
    Context,
    Jitter,
    Job,
    PerdureError,
    Permanent,
    Release,
    Retry,
    Unique,
)
from perdure_systems.kit.database import Database, Session
from perdure_systems.pulse import log_lines
from perdure_systems.pulse.documents import paragraphs, split
from perdure_systems.pulse.limits import BUDGET
from perdure_systems.pulse.model import Answer, ModelError, model
from perdure_systems.pulse.records import Chunk, Records, Result
from perdure_systems.pulse.settings import QUEUE, read_settings

RETRY: Final = Retry(attempts=1 + log_lines.RETRIES, backoff=Backoff.none(), jitter=Jitter.none())
STATE_WORDS: Final = {
    "ready": "queued",
    "scheduled": "queued",
    "retrying": "queued",
    "waiting": "queued",
    "succeeded": "completed",
    "dead": "failed",
}
ONE_OF_A_SOURCE: Final = Unique(by=("source", "handler"))
TOPICS_LIMIT: Final = 8
_MAY_PASS: Final = (ModelError, ConnectionError, TimeoutError, psycopg.OperationalError, apsw.BusyError, PerdureError)

app = App()
database = Database(app, "pulse", Path(__file__).parent / "migrations")
records = Records(database)
log_lines.subscribe(app)


class Finding(msgspec.Struct, frozen=True):
    """What the model found in one piece."""

    summary: str
    topics: list[str]
    cost: float


def triage(error: BaseException) -> Permanent | None:
    """Retry only errors that may pass: calls to the model, the network, time limits, the database."""
    if isinstance(error, _MAY_PASS) and not isinstance(error, BudgetExceeded):
        return None
    return Permanent(f"{type(error).__name__}: {error}")


@app.lifespan
async def open_model() -> AsyncIterator[None]:
    """The connections to the model are opened before the first job and closed after the workers."""
    async with model.opened():
        yield


@app.job(name="pulse.ingest", queue=QUEUE, retry=RETRY, triage=triage, unique=ONE_OF_A_SOURCE, state_words=STATE_WORDS)
async def ingest(ctx: Context, document: str, source: str, handler: str) -> Result:
    """Phase `ingest` splits the document and makes a child for each piece; phase `aggregate` joins what they found."""
    settings = read_settings()
    pieces = await split_document(document)
    if not pieces:
        log_lines.tell_refused(ctx.job_id)
        raise CancelJob(log_lines.PARENT_DELETED)
    ctx.progress(0, pieces, f"ingest of {source}")
    found = await ctx.gather(
        [analyse.call(document, number, handler) for number in range(pieces)],
        name="aggregate",
        failures="collect",
        within=settings.aggregate_within,
        on_end="keep" if settings.children_on_end == "keep" else "cancel",
    )
    result = aggregate(ctx, document, found)
    ctx.progress(pieces, pieces, f"aggregate of {source}")
    async with ctx.transaction() as connection:
        await records.keep_result(Session(connection), result)
    return result


@app.job(name="pulse.analyse", queue=QUEUE, retry=RETRY, triage=triage, timeout="5m", state_words=STATE_WORDS)
async def analyse(ctx: Context, document: str, number: int, handler: str) -> Finding:
    """Ask the model about one piece, when rate and money allow it. An answer that was paid for is kept."""
    chunk = await records.chunk(document, number)
    if chunk is None:
        raise Permanent(f"piece {number} of document {document} is gone")
    limits = await records.limits()
    asking = partial(ask, ctx, handler, chunk.body, is_limited=limits.has_budget)
    answer = await ctx.step("ask", asking, gates=limits.gates(chunk.estimated))
    ctx.progress(1, 1)
    async with ctx.transaction() as connection:
        await records.pay(Session(connection), document, number, answer.cost, ctx.claimed_at)
    return Finding(answer.summary, answer.topics, answer.cost)


@app.job(name="pulse.index", queue=QUEUE, retry=RETRY, triage=triage, unique=ONE_OF_A_SOURCE, state_words=STATE_WORDS)
async def index(ctx: Context, document: str, source: str, handler: str = "index") -> int:
    """One phase: add each paragraph to the search index. A stop finds it between two paragraphs, with a checkpoint."""
    del source, handler
    found = await records.document(document)
    if found is None:
        raise CancelJob("the document was deleted")
    whole = paragraphs(found.body)
    for number in range(ctx.cursor or 0, len(whole)):
        if ctx.closing:
            raise Release
        await model.embed(whole[number])
        ctx.progress(number + 1, len(whole))
        await ctx.checkpoint(number + 1)
    return len(whole)


HANDLERS: Final[dict[str, Job[..., Result] | Job[..., int]]] = {"summary": ingest, "topics": ingest, "index": index}
"""What can be done with a document, and the job that does it."""


async def split_document(document: str) -> int:
    """Split a document and keep its pieces with their prices, once; how many there are, 0 if the document is gone."""
    settings = read_settings()
    found = await records.document(document)
    pieces = split(found.body, settings.chunk_characters) if found is not None else []
    return await records.keep_chunks(
        document,
        [
            Chunk(document=document, number=number, body=piece, estimated=settings.estimate(piece))
            for number, piece in enumerate(pieces)
        ],
    )


async def ask(ctx: Context, handler: str, text: str, *, is_limited: bool) -> Answer:
    """Ask the model, and take what it has cost from the budget."""
    answer = await model.ask(handler, text)
    if is_limited:
        await ctx.spend(answer.cost, BUDGET)
    return answer


def aggregate(ctx: Context, document: str, found: Sequence[ChildResult[Finding]]) -> Result:
    """Join the findings. Pieces that failed leave a warning; if none succeeded there is nothing to join."""
    findings = [child.value for child in found if child.ok and child.value is not None]
    failed = len(found) - len(findings)
    if not findings:
        raise Permanent(f"none of the {len(found)} pieces could be analysed: {found[0].error or found[0].state}")
    if failed:
        ctx.warn(f"{failed} of {len(found)} pieces could not be analysed")
    topics = Counter(topic for finding in findings for topic in finding.topics)
    return Result(
        document=document,
        summary=" ".join(finding.summary for finding in findings),
        topics=[topic for topic, _ in topics.most_common(TOPICS_LIMIT)],
        chunks=len(found),
        failed=failed,
        cost=round(sum(finding.cost for finding in findings), 6),
        finished_at=ctx.claimed_at,
    )
