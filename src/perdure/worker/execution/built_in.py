"""The kinds of job that every worker knows: batches and chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perdure.domain.flows.plan import BATCH, CHAIN, Planned
from perdure.flows.families.batches import BatchOutcome, run_batch
from perdure.flows.families.chains import ends_chain, run_chain
from perdure.kinds.kind import Kind, Mode, Registry
from perdure.kinds.signature import Signature
from perdure.policy.retries.retry import DEFAULT_RETRY
from perdure.policy.retries.triage import Triage
from perdure.worker.attempt.context.context import Context
from perdure.worker.attempt.context.family_calls import journal_of


async def _batch(
    ctx: Context, calls: list[Planned], then: Planned | None = None, name: str | None = None
) -> BatchOutcome:
    return await run_batch(journal_of(ctx, "batch"), calls, then, name)


async def _chain(ctx: Context, links: int, first: list[Planned]) -> Any:  # noqa: ARG001 - `first` is for readers
    return await run_chain(journal_of(ctx, "chain"), links)


def _kind(name: str, handler: Callable[..., Any], triage: Triage | None = None) -> Kind:
    return Kind(
        name=name,
        handler=handler,
        signature=Signature(handler, Context),
        mode=Mode.TASK,
        retry=DEFAULT_RETRY,
        triage=triage,
    )


BATCH_KIND: Final = _kind(BATCH, _batch)
CHAIN_KIND: Final = _kind(CHAIN, _chain, ends_chain)
BUILT_IN: Final[Registry] = {kind.name: kind for kind in (BATCH_KIND, CHAIN_KIND)}
