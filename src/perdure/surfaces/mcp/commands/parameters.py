"""Parameters that several commands share, each described once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Why = Annotated[
    str, Field(description="Why: one sentence for the audit trail.", min_length=3, max_length=500, pattern=r"\S")
]
DryRunId = Annotated[
    str | None,
    Field(
        description="The id that the dry run of the same call returned. Without it nothing is changed.",
        max_length=100,
    ),
]
Jobs = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]] | None,
    Field(description="Ids or refs of jobs; or give a search.", min_length=1, max_length=10_000),
]
WhichJobs = Annotated[
    str | None,
    Field(description="Which jobs, in the words of find_jobs, such as `group:FINGERPRINT`.", max_length=2_000),
]
