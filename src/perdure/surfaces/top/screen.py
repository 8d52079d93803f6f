"""The screen of `perdure top`: a new snapshot every two seconds, lists that keep their cursor, and commands by keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widgets import DataTable, Footer, Static

from perdure.domain.worker import WorkerView
from perdure.errors import PerdureError
from perdure.operate.desk import Desk
from perdure.operate.views.failure_groups import FailureGroup
from perdure.operate.views.kind_views import KindView
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.top import commands
from perdure.surfaces.top.details import details
from perdure.surfaces.top.dialogs import Notice, Question
from perdure.surfaces.top.head import KEYS, Contact, figures, needs, needs_in_full, tabs, title
from perdure.surfaces.top.look import SPANS, Look, look
from perdure.surfaces.top.tables import LISTS, ListView, Row

_REFRESH_SECONDS: Final = 2.0
_NARROW_BELOW_COLUMNS: Final = 100  # columns of the terminal
_COMMAND: Final = "command"  # the group of the one worker that runs a command
_THEME: Final = "ansi-dark"  # the terminal's own colours and background, dark or light


class Top(App[None]):
    """A live screen of queues, workers, dead letters and kinds."""

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"list({number - 1})", show=False) for number in range(1, len(LISTS) + 1)),
        Binding("tab", "next_list", "List", priority=True),
        Binding("n", "needs", "Needs"),
        Binding("s", "span", "Span"),
        Binding("enter", "details", "Details"),
        Binding("p", "pause", "Pause"),
        Binding("u", "quiet", "Quiet"),
        Binding("o", "probe", "Probe"),
        Binding("r", "requeue", "Requeue"),
        Binding("question_mark", "keys", "Keys"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),  # works in a question too
    ]
    shown: reactive[int] = reactive(0)

    def __init__(self, desk: Desk, database: str, *, refresh_seconds: float = _REFRESH_SECONDS) -> None:
        is_own = "TEXTUAL_THEME" in os.environ
        super().__init__(ansi_color=None if is_own else True)  # set here as well as in the theme, for NO_COLOR
        if not is_own:
            self.theme = _THEME
        self._desk = desk
        self._database = database
        self._refresh_seconds = refresh_seconds
        self._span = SPANS[0]
        self._look: Look | None = None
        self._contact = Contact.LIVE
        self._rows: dict[str, Row] = {}
        self._columns: tuple[str, ...] = ()
        self._lock = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """Lay the parts out from top to bottom."""
        yield Static(id="title")
        yield Static(id="figures")
        yield Static(id="needs")
        yield Static(id="tabs")
        yield Static(id="empty")
        yield DataTable[Text](id="list", cursor_type="row", zebra_stripes=False)
        yield Static(id="status")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Take the first snapshot, then one after the other."""
        self.query_one(DataTable).focus()
        self._tick()
        self.set_interval(self._refresh_seconds, self._tick)

    def _tick(self) -> None:
        """Take a snapshot, unless the last one is still being read."""
        if not self._lock.locked():
            self._look_again()
        elif self._contact is Contact.LIVE:
            self._contact = Contact.SLOW
            self._draw()

    @work(group="look")
    async def _look_again(self) -> None:
        """Read in the background, so that keys work while the database does not answer."""
        await self.refresh_look()

    async def refresh_look(self) -> None:
        """Read everything again. While the database is unavailable or slow, the last snapshot stays, with a note."""
        async with self._lock:
            try:
                self._look = await look(self._desk, self._span)
                if self._contact is Contact.AWAY:
                    self._say("")
                self._contact = Contact.LIVE
            except PerdureError as error:
                self._contact = Contact.AWAY
                self._say(f"No answer from the database: {one_line(str(error))}. Retrying…", "bold red")
        self._draw()

    @property
    def _list(self) -> ListView:
        return LISTS[self.shown]

    def watch_shown(self) -> None:
        """Show another list."""
        if self.is_running:
            self._draw()

    def on_resize(self) -> None:
        """A narrow terminal shows fewer columns."""
        self.call_after_refresh(self._draw)  # before, the size is still the old one

    def _draw(self) -> None:
        seen, (width, height) = self._look, self.size
        self.query_one("#title", Static).update(title(self._database, seen, self._contact, width))
        if seen is None:
            return
        self.query_one("#figures", Static).update(figures(seen, width))
        self.query_one("#needs", Static).update(needs(seen, width, height))
        self.query_one("#tabs", Static).update(tabs(seen, self.shown))
        self._fill(self._list, seen, width)

    def _fill(self, chosen: ListView, seen: Look, width: int) -> None:
        table = self.query_one(DataTable)
        hidden = chosen.hidden_when_narrow if width < _NARROW_BELOW_COLUMNS else frozenset()
        columns = tuple(column for column in chosen.columns if column not in hidden)
        rows = chosen.rows(seen)
        current = self._current_key(table)
        self._rows = {row.key: row for row in rows}
        is_same = columns == self._columns and [row.key for row in rows] == [key.value for key in table.rows]
        if not is_same:
            table.clear(columns=True)
            table.add_columns(*columns)
            self._columns = columns
        for place, (row, cells) in enumerate(zip(rows, chosen.fitted(rows, columns, width), strict=True)):
            if is_same:
                for number, cell in enumerate(cells):
                    table.update_cell_at((place, number), cell, update_width=True)  # type: ignore[arg-type]
            else:
                table.add_row(*cells, key=row.key)
        if not is_same and current in self._rows:
            table.move_cursor(row=table.get_row_index(current))
        table.display = bool(rows)
        empty = self.query_one("#empty", Static)
        empty.display = not rows
        empty.update(chosen.empty)

    def _current_key(self, table: DataTable[Text]) -> str:
        if not table.row_count:
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)

    def _selected(self) -> Any:
        row = self._rows.get(self._current_key(self.query_one(DataTable)))
        return None if row is None else row.about

    def _say(self, text: str, style: str = "") -> None:
        self.query_one("#status", Static).update(Text.assemble((text, style)))

    def action_list(self, number: int) -> None:
        """Show the list of this number."""
        self.shown = number

    def action_next_list(self) -> None:
        """Show the list after this one."""
        self.shown = (self.shown + 1) % len(LISTS)

    def action_span(self) -> None:
        """Switch between the last hour, day and week."""
        self._span = SPANS[(SPANS.index(self._span) + 1) % len(SPANS)]
        self._look_again()

    def action_needs(self) -> None:
        """Show everything that needs a person, with the commands to begin with."""
        if self._look is not None:
            self.push_screen(Notice("What needs a person", needs_in_full(self._look)))

    def action_keys(self) -> None:
        """Explain the keys."""
        self.push_screen(Notice("Keys", KEYS))

    def on_data_table_row_selected(self) -> None:
        """Enter on a row explains it."""
        if self._look is not None and (about := self._selected()) is not None:
            self.push_screen(Notice(*details(about, self._look.at)))

    def action_details(self) -> None:
        """Explain the row under the cursor."""
        self.on_data_table_row_selected()

    def action_pause(self) -> None:
        """Pause or resume the queue or kind under the cursor."""
        self._offer(commands.pause_or_resume, QueueView | KindView, "a queue or kind")

    def action_quiet(self) -> None:
        """Tell the worker under the cursor to stop claiming, or to claim again."""
        self._offer(commands.quiet_or_loud, WorkerView, "a worker")

    def action_probe(self) -> None:
        """Requeue one dead letter of the group under the cursor."""
        self._offer(commands.probe, FailureGroup, "a group of dead letters")

    def action_requeue(self) -> None:
        """Requeue the group under the cursor."""
        self._offer(commands.requeue_group, FailureGroup, "a group of dead letters")

    def _offer(self, make: Callable[[Desk, Any], Awaitable[commands.Offer]], wanted: Any, what: str) -> None:
        about = self._selected()
        if any(one.group == _COMMAND and not one.is_finished for one in self.workers):
            self._say("The last command is still under way.", "yellow")
        elif isinstance(about, wanted):
            self._ask_and_run(make, about)
        else:
            self._say(f"Choose {what} first: the keys 1 to {len(LISTS)} show the lists.", "yellow")

    @work(group=_COMMAND)
    async def _ask_and_run(self, make: Callable[[Desk, Any], Awaitable[commands.Offer]], about: Any) -> None:
        try:
            offer = await make(self._desk, about)
            if await self.push_screen_wait(Question(offer.question, offer.facts)):
                self._say(await offer.run(), "green")
                await self.refresh_look()
        except PerdureError as error:
            self._say(one_line(str(error)), "bold red")
