"""The step that photographs a page in two sizes: one that fails does not take the other with it."""

from __future__ import annotations

import re
from typing import Final

from perdure import Release, Verdict, current_context
from perdure_systems.audits import storage
from perdure_systems.audits.addresses import check_address
from perdure_systems.audits.pipeline.instruments import SIZES, instruments
from perdure_systems.audits.results import Screenshot, Screenshots, Size

_ERROR_LIMIT_CHARACTERS: Final = 300
_WHERE: Final = re.compile(r" at https?://\S+$")  # the browser repeats the address


class ScreenshotsFailed(RuntimeError):  # noqa: N818 - says what happened
    """Screenshots are required, and one or both could not be taken."""


async def take_screenshots(audit_id: str, url: str, required: bool) -> Screenshots:
    """Take what can be taken; with `required`, anything missing is an error."""
    await check_address(url)
    taken: dict[Size, Screenshot] = {}
    errors: dict[Size, str] = {}
    for size, (width, height) in SIZES.items():
        try:
            picture = await instruments().photograph(url, size)
        except Verdict:
            raise
        except Exception as error:  # a failed screenshot must not fail the report
            context = current_context()
            if context is not None and context.closing:
                raise Release(message="the worker is closing") from error
            errors[size] = brief(error)
        else:
            storage.save(audit_id, f"{size}.jpg", picture)
            taken[size] = Screenshot(f"{size}.jpg", width, height, len(picture))
    if errors and required:
        raise ScreenshotsFailed(errors_text(errors))
    return Screenshots(taken, errors)


def errors_text(errors: dict[Size, str]) -> str:
    """All errors in one line."""
    return "; ".join(f"{size}: {error}" for size, error in errors.items())


def brief(error: BaseException) -> str:
    """Type and first line of an error."""
    lines = str(error).strip().splitlines()
    first = _WHERE.sub("", lines[0]) if lines else ""
    return f"{type(error).__name__}: {first}".rstrip(": ")[:_ERROR_LIMIT_CHARACTERS]
