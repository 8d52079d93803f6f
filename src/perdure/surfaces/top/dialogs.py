"""Questions and explanations that cover the screen until they are answered."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static


class Question(ModalScreen[bool]):
    """A question before a command; returns whether the operator confirms it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str, facts: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._question = question
        self._facts = facts

    def compose(self) -> ComposeResult:
        """Show the question, what is known, and the keys."""
        with Vertical(classes="dialog"):
            yield Static(Text(self._question, style="bold"))
            for fact in self._facts:
                yield Static(Text(fact))
            yield Static(Text("y  yes     n  no", style="dim"), classes="keys")

    def action_answer(self, meant: bool) -> None:
        """Close with this answer."""
        self.dismiss(meant)


class Notice(ModalScreen[None]):
    """A text that is read and closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,question_mark", "close", "Close")]

    def __init__(self, title: str, lines: tuple[str, ...]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Show the text."""
        with Vertical(classes="dialog"):
            yield Static(Text(self._title, style="bold"))
            for line in self._lines:
                yield Static(Text(line))
            yield Static(Text("Escape closes", style="dim"), classes="keys")

    def action_close(self) -> None:
        """Close."""
        self.dismiss(None)
