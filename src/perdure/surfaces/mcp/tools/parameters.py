"""Parameters that several tools share, each described once."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

MOST_ROWS: Final = 50

Job = Annotated[str, Field(description="The id of the job, or its ref.", min_length=1, max_length=200)]
Search = Annotated[
    str,
    Field(
        description="Which jobs: words such as `kind:charge state:dead queue:mail tag:eu group:FINGERPRINT since:1h "
        "args.user.id=42 error~timeout`; all must match. Empty: all jobs.",
        max_length=2_000,
    ),
]
Limit = Annotated[int, Field(description="How many at most.", ge=1, le=MOST_ROWS)]
Queue = Annotated[str | None, Field(description="Only this queue.", max_length=200)]
Kind = Annotated[str | None, Field(description="Only this kind.", max_length=200)]
