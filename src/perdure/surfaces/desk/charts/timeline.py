"""A job's history to scale: lanes of bars, marks, a line at the present, and expected attempts in dashed boxes.

The next retry is often an hour away although everything so far took seconds. Then the future has its own scale, marked
by a broken line; the past always has one scale.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from markupsafe import Markup
from msgspec import Struct

from perdure.surfaces.desk.charts.scale import round_times
from perdure.surfaces.desk.charts.svg import picture, tag, title
from perdure.surfaces.desk.view.numbers import short_span

WIDTH_UNITS = 1_000.0
_LEFT_UNITS = 76.0  # room for the names of lanes
_RIGHT_UNITS = 990.0
_TOP_UNITS = 26.0
_LANE_UNITS = 36.0
_BAR_UNITS = 24.0
_SMALLEST_BAR_UNITS = 3.0  # so that a short attempt stays visible
_SMALLEST_BAR_AHEAD_UNITS = 16.0  # so that its number fits in
_LARGEST_SHARE_AHEAD = 0.35  # of the width, with a scale of its own
_LETTER_UNITS = 6.4  # its width, roughly
_LABEL_UNITS = 60.0  # the width of a time
_INSTANT = timedelta(milliseconds=1)


class Bar(Struct, frozen=True, kw_only=True):
    """A time span in a lane. `end` None: it has not ended. `ahead`: it is expected, and drawn dashed."""

    lane: str
    start: datetime
    end: datetime | None = None
    colour: str = "none"
    label: str = ""
    said: str = ""  # on hover, beside its length
    soft: bool = False  # a wait: paler than an attempt
    outlined: bool = False
    ahead: bool = False


class Mark(Struct, frozen=True, kw_only=True):
    """An instant in a lane: a crash, a poll."""

    lane: str
    at: datetime
    colour: str = "dead"
    said: str = ""


class Timeline(Struct, frozen=True, kw_only=True):
    """The content. `now` None: the job is final, so no line is drawn. `lanes` are ordered from the top."""

    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...] = ()
    now: datetime | None = None

    @property
    def start(self) -> datetime:
        """The start of the timeline."""
        return min([*(bar.start for bar in self.bars), *(mark.at for mark in self.marks)])

    @property
    def past_end(self) -> datetime:
        """The end of the past part."""
        ends = [bar.end or bar.start for bar in self.bars if not bar.ahead] + [mark.at for mark in self.marks]
        return max([self.now] if self.now else (ends or [self.start]))

    @property
    def end(self) -> datetime:
        """The end, including the future part."""
        return max([self.past_end, *(bar.end or bar.start for bar in self.bars)])


class Scale(Struct, frozen=True):
    """Maps times to x positions. `bend` is the start of the future part; `is_bent`: that part has another scale."""

    start: datetime
    bend: datetime
    end: datetime
    bend_x: float
    is_bent: bool = False

    def x(self, at: datetime) -> float:
        """The x position of a time."""
        if at <= self.bend or self.end == self.bend:
            return _LEFT_UNITS + (self.bend_x - _LEFT_UNITS) * _part(self.start, min(at, self.bend), self.bend)
        return self.bend_x + (_RIGHT_UNITS - self.bend_x) * _part(self.bend, at, self.end)


def scale_of(what: Timeline) -> Scale:
    """One scale if the future part is short enough, else one for the past and one for the future."""
    start, bend = what.start, max(what.past_end, what.start + _INSTANT)
    end = max(what.end, bend)
    if end == bend:
        return Scale(start, bend, end, _RIGHT_UNITS)
    ahead = (end - bend) / (end - start)
    bend_x = _RIGHT_UNITS - (_RIGHT_UNITS - _LEFT_UNITS) * min(ahead, _LARGEST_SHARE_AHEAD)
    return Scale(start, bend, end, bend_x, is_bent=ahead > _LARGEST_SHARE_AHEAD)


def timeline(what: Timeline, *, label: str) -> Markup:
    """The picture; nothing for a timeline without bars."""
    if not what.bars:
        return Markup("")
    scale = scale_of(what)
    height = _TOP_UNITS + _LANE_UNITS * len(what.lanes) + 26
    floor = height - 26
    drawn = [*_grid(what, scale, floor), *_names(what)]
    drawn += [_bar(bar, what, scale) for bar in what.bars]
    drawn += [_mark(mark, what, scale) for mark in what.marks]
    if what.now is not None:
        drawn += _now(what.now, scale, floor)
    whole = picture(label, WIDTH_UNITS, height, "lanes", drawn, stretch=False)
    return Markup('<div class="timeline-box"><div class="timeline">{}</div>{}</div>').format(
        whole, _beside(what, height)
    )


def _beside(what: Timeline, height: float) -> Markup:
    """The names of the lanes again, for a narrow window in which the picture scrolls beneath them."""
    place = {
        "class": "lane-names",
        "viewBox": f"0 0 {_LEFT_UNITS:g} {height:g}",
        "aria-hidden": "true",
        "focusable": "false",
    }
    return tag("svg", place, _names(what))


def _grid(what: Timeline, scale: Scale, floor: float) -> list[Markup]:
    drawn = []
    for at in round_times(scale.start, scale.bend if scale.is_bent else scale.end, 6):
        x = scale.x(at)
        drawn.append(tag("line", {"class": "rule", "x1": x, "x2": x, "y1": _TOP_UNITS - 4, "y2": floor}))
        if scale.bend_x - x > 40 or not scale.is_bent:  # noqa: PLR2004 - the label of now stands there
            drawn.append(
                _time_label(at, x, floor + 17, what, anchor="end" if _RIGHT_UNITS - x < _LABEL_UNITS / 2 else "middle")
            )
    if scale.is_bent:
        wave = " ".join(f"l{-3 if number % 2 else 3} 4" for number in range(int((floor - _TOP_UNITS) / 4)))
        drawn.append(tag("path", {"class": "break", "d": f"M{scale.bend_x + 14:.1f} {_TOP_UNITS:.1f} {wave}"}))
        drawn.append(_time_label(scale.end, _RIGHT_UNITS, floor + 17, what, anchor="end"))
    return drawn


def _time_label(at: datetime, x: float, y: float, what: Timeline, anchor: str = "middle") -> Markup:
    fine = what.past_end - what.start < timedelta(minutes=5)
    far = abs(at - what.past_end) > timedelta(hours=20)
    form, written = ("day", "%Y-%m-%d %H:%M") if far else (("second", "%H:%M:%S") if fine else ("tick", "%H:%M"))
    stamp = at.astimezone(UTC)
    attributes = {"x": x, "y": y, "text-anchor": anchor, "data-time": stamp.isoformat(), "data-as": form}
    return tag("text", attributes, [stamp.strftime(written)])


def _names(what: Timeline) -> list[Markup]:
    return [
        tag("text", {"class": "lane", "x": 0.0, "y": _TOP_UNITS + _LANE_UNITS * row + _BAR_UNITS / 2 + 4}, [name])
        for row, name in enumerate(what.lanes)
    ]


def _bar(bar: Bar, what: Timeline, scale: Scale) -> Markup:
    end = bar.end or what.past_end
    x = scale.x(bar.start)
    width = max(scale.x(max(end, bar.start)) - x, _SMALLEST_BAR_AHEAD_UNITS if bar.ahead else _SMALLEST_BAR_UNITS)
    x = min(x, _RIGHT_UNITS - width)
    y = _TOP_UNITS + _LANE_UNITS * what.lanes.index(bar.lane)
    look = "ahead" if bar.ahead else ("outline" if bar.outlined else ("soft" if bar.soft else "solid"))
    said = f"{bar.said or bar.label or bar.lane}: {short_span(end - bar.start)}"
    box = {"class": f"bar {look} c-{bar.colour}", "x": x, "y": y, "width": width, "height": _BAR_UNITS, "rx": 4.0}
    shapes = [tag("rect", box, [title(said)])]
    if bar.label and len(bar.label) * _LETTER_UNITS < width - (0 if bar.ahead else 6):
        place = {"class": f"inside {look}", "x": x + width / 2, "y": y + _BAR_UNITS / 2 + 4, "text-anchor": "middle"}
        shapes.append(tag("text", place, [bar.label]))
    return tag("g", None, shapes)


def _mark(mark: Mark, what: Timeline, scale: Scale) -> Markup:
    x, y = scale.x(mark.at), _TOP_UNITS + _LANE_UNITS * what.lanes.index(mark.lane) + _BAR_UNITS / 2
    diamond = f"M{x:.1f} {y - 6:.1f}l5 6l-5 6l-5 -6Z"
    return tag("path", {"class": f"mark c-{mark.colour}", "d": diamond}, [title(mark.said)])


def _now(now: datetime, scale: Scale, floor: float) -> list[Markup]:
    x = scale.x(now)
    late = x > WIDTH_UNITS * 0.8
    stamp = now.astimezone(UTC)
    label = {
        "class": "now",
        "x": x - 6 if late else x + 6,
        "y": 13.0,
        "text-anchor": "end" if late else "start",
        "data-time": stamp.isoformat(),
        "data-as": "nowtick",
    }
    return [
        tag("line", {"class": "now", "x1": x, "x2": x, "y1": 4.0, "y2": floor}),
        tag("text", label, [f"now {stamp:%H:%M:%S}"]),
    ]


def _part(start: datetime, at: datetime, end: datetime) -> float:
    return min(max((at - start) / (end - start), 0.0), 1.0)
