"""Tools about the whole system: the overview, and two spans side by side."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from perdure.surfaces.mcp.answers.figures import Compared, OverviewNow, compared, overview_now
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.tools.parameters import Kind, Queue

Span = Annotated[str, Field(description="A length of time, such as 15m, 1h or 1d.", max_length=20)]
Ago = Annotated[
    str | None,
    Field(description="How much earlier the other span ended, such as 1d. Without it: the span before.", max_length=20),
]
By = Annotated[Literal["queue", "kind"] | None, Field(description="One group for each queue or kind.")]


class FigureTools:
    """Shows the overview and compares spans."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def overview(self, ask: Ask) -> OverviewNow:
        """Show the overview: what needs a person, open alerts, each queue now and in the last hour, the workers.

        Begin here.
        """
        async with self._ground.at_desk(ask, "overview") as desk:
            needs, alerts, queues = await desk.attention(), await desk.alerts.open(), await desk.queues()
            now = overview_now(self._ground.quoter(), await desk.overview(), needs, alerts, queues)
            return self._ground.sized(now)

    async def compare_spans(
        self, ask: Ask, span: Span = "1h", ago: Ago = None, by: By = None, queue: Queue = None, kind: Kind = None
    ) -> Compared:
        """Compare the outcomes of attempts in the last span with an earlier span of the same length."""
        async with self._ground.at_desk(ask, "compare_spans") as desk:
            found = await desk.compare(span, ago, by=by, queue=queue, kind=kind)
            return self._ground.sized(compared(found, await desk.now()))
