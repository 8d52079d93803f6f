"""Write the two tables of docs/reference/events.md from the events themselves, so that they cannot lie.

Run it after a change to `perdure.events`; a test fails while the page is out of date. What stands around the tables is
left as it is.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Final

from perdure.events import Event

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "events.md"

_FACTS: Final = ["| event | level | log line | fields |", "|---|---|---|---|"]
_TIMES: Final = ["| event | when |", "|---|---|"]


def render(page: str) -> str:
    """The page with its tables as they should be."""
    events = Event.__subclasses__()
    page = _replaced(page, _FACTS, [_fact(event) for event in events])
    return _replaced(page, _TIMES, [_time(event) for event in events])


def _fact(event: type[Event]) -> str:
    fields = ", ".join(f"`{field}`" for field in event.__struct_fields__)
    return f"| `{event.__name__}` | {event.level} | {event.sentence} | {fields} |"


def _time(event: type[Event]) -> str:
    return f"| `{event.__name__}` | {(inspect.getdoc(event) or '').splitlines()[0]} |"


def _replaced(page: str, head: list[str], rows: list[str]) -> str:
    old = re.compile("\n".join(re.escape(line) for line in head) + r"\n(?:\|.*\n)*")
    if len(old.findall(page)) != 1:
        raise SystemExit(f"{PAGE.name} needs one table that begins with {head[0]}")
    return old.sub(lambda _: "\n".join([*head, *rows]) + "\n", page)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
