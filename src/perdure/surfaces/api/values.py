"""Types of values that requests bring: msgspec checks their bounds, and the OpenAPI document names them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from perdure.operate.desk_base import JOBS_PER_COMMAND_LIMIT, ROWS_PER_PAGE_LIMIT

Instant = Annotated[datetime, Meta(tz=True)]
"""A time with its zone, as in 2026-03-01T09:00:00Z."""

Limit = Annotated[int, Meta(ge=1, le=ROWS_PER_PAGE_LIMIT)]
"""The size of a page."""

Cap = Annotated[int, Meta(ge=1, le=100_000)]
"""How many jobs are looked at to count them."""

Ids = Annotated[tuple[str, ...], Meta(min_length=1, max_length=JOBS_PER_COMMAND_LIMIT)]
"""Jobs by id or ref."""
