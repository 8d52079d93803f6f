"""One thing that needs a person."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure.storage.operate.diagnosis import Severity


class Need(Struct, frozen=True, kw_only=True):
    """Something that does not go away by itself.

    `subject` and `what` are one sentence: "Queue reports" "has 212 jobs and no worker". `quote` ends it with foreign
    text, such as an error. `about` is the type of thing and `name` identifies it, so that the same need is recognised
    later; it is empty if there are several. `path` is its page on the desk, `label` the text of the link, `cli` the
    first command to try. `act` is a command of the desk that helps, if there is one, and `act_label` says what it does.
    """

    severity: Severity
    about: str
    name: str
    subject: str
    what: str
    quote: str = ""
    detail: str = ""
    since: datetime | None = None
    path: str = "/"
    label: str = ""
    act: str = ""
    act_label: str = ""
    cli: str = ""

    @property
    def sentence(self) -> str:
        """All of it in one line, for a terminal."""
        return f"{self.subject} {self.what}{f' {self.quote}' if self.quote else ''}"
