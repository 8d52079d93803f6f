"""What the tour prints, and how it waits for its reader."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table

_AUTO_PAUSE_SECONDS: Final = 1.5  # between two steps without a reader
_INDENT_COLUMNS: Final = 5


class Screen:
    """A terminal. With `auto` the tour continues by itself; otherwise it waits for Enter."""

    def __init__(self, *, auto: bool, pause: float = _AUTO_PAUSE_SECONDS) -> None:
        self.console = Console(highlight=False)
        self._auto = auto
        self._pause = pause

    def title(self, text: str, under: str) -> None:
        """The head of the tour."""
        self.console.print(Panel.fit(f"[bold]{escape(text)}[/bold]\n[dim]{escape(under)}[/dim]", border_style="cyan"))

    def step(self, number: int, of: int, title: str) -> None:
        """The head of a step."""
        self.console.print()
        self.console.print(f"[cyan]{number}/{of}[/cyan]  [bold]{escape(title)}[/bold]")

    def say(self, text: str) -> None:
        """A paragraph."""
        self._line("", escape(text))

    def look(self, text: str, address: str) -> None:
        """Something to look at in the browser."""
        self._line("→", f"[link={address}][cyan]{escape(address)}[/cyan][/link]\n[dim]{escape(text)}[/dim]", "cyan")

    def good(self, text: str) -> None:
        """What was promised has happened."""
        self._line("✓", escape(text), "green")

    def plain(self, text: str) -> None:
        """What cannot be shown here, and why."""
        self._line("!", escape(text), "yellow")

    def facts(self, rows: dict[str, object]) -> None:
        """A small table of names and values."""
        table = Table.grid(padding=(0, 2))
        for name, value in rows.items():
            table.add_row(f"[dim]{escape(name)}[/dim]", escape(str(value)))
        self.console.print(Padding(table, (0, 0, 0, _INDENT_COLUMNS)))

    def command(self, text: str) -> None:
        """A command to copy: in one piece, however narrow the terminal is."""
        self.console.print(f"{' ' * _INDENT_COLUMNS}[bold]$ {escape(text)}[/bold]", soft_wrap=True)

    def _line(self, mark: str, text: str, colour: str = "default") -> None:
        """A line behind a mark; what wraps stays behind it."""
        table = Table.grid(padding=(0, 1))
        table.add_column(width=_INDENT_COLUMNS - 1, justify="right")
        table.add_column(overflow="fold")
        table.add_row(f"[{colour}]{mark}[/{colour}]", text)
        self.console.print(table)

    async def wait_for_reader(self, enter: str = "go on") -> None:
        """Wait for Enter, or a moment. `enter` says what Enter does."""
        if self._auto:
            await asyncio.sleep(self._pause)
            return
        self.console.print(f"{' ' * _INDENT_COLUMNS}[dim]Enter: {enter}   Ctrl-C: close ❀[/dim]", end=" ")
        await _line_from_stdin()


async def _line_from_stdin() -> None:
    """Wait for a line, without a thread that would outlive a Ctrl-C."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(sys.stdin, came.set)
    try:
        await came.wait()
        sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
