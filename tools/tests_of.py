"""Say where the tests of a module are: `python tools/tests_of.py src/perdure/policy/retries/jitter.py`.

CONTRIBUTING.md has the rule ("Where the tests of a module are"). Without arguments, print every module for which it
gives no tests although the module decides something; tests/packaging/test_tests_of_modules.py allows none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
HOUSE: Final = ROOT / "src" / "perdure"
TESTS: Final = ROOT / "tests"

FROM_OUTSIDE: Final = frozenset(
    {
        *("surfaces/cli/alerts", "surfaces/cli/bulk", "surfaces/cli/database", "surfaces/cli/holds"),
        *("surfaces/cli/jobs", "surfaces/cli/outlets", "surfaces/cli/questions", "surfaces/cli/schedules"),
        *("surfaces/cli/serving", "surfaces/cli/workers", "surfaces/desk/pages", "surfaces/top"),
    }
)
"""Rooms of commands and pages: the tests in the folder of the room type the command, or ask for the page."""

ELSEWHERE: Final = {
    "alerts": ("signals/alerts/test_delivery.py", "operate/alerts/test_declared.py"),
    "desk": ("surfaces/server/test_site.py",),
    "domain/alerts/alert": ("policy/alerts/test_following.py",),
    "domain/schedule": ("policy/schedules", "upkeep/test_scheduler.py"),
    "engines/borrowed": ("transactions", "pooler"),
    "engines/postgres/operate/alerts": ("operate/alerts",),
    "engines/sqlite/operate/alerts": ("operate/alerts",),
    "enqueue/job": ("app/test_enqueueing.py", "app/test_own_settings.py"),
    "events/log": ("surfaces/cli/workers/test_logs.py",),
    "flows/events": ("flows/test_waiting.py",),
    "hooks/hooks": ("hooks/test_lifespan.py", "hooks/test_middleware.py"),
    "lifecycle/process/forced_exit": ("worker/test_program_end.py",),
    "mcp": ("surfaces/mcp/test_endpoint.py",),
    "metrics": ("signals/metrics/test_exporter.py",),
    "operate/sync_desk": ("enqueue/test_handle.py",),
    "otel": ("signals/otel/test_instrument.py",),
    "signals/metrics/extra": ("surfaces/test_extras.py",),
    "signals/otel/extra": ("surfaces/test_extras.py",),
    "storage/effects": ("effects", "engines/sqlite/claims/test_effects.py"),
    "storage/operate/alerts": ("operate/alerts",),
    "surfaces/api/handlers": ("surfaces/api/test_story.py", "surfaces/api/test_bad_input.py"),
    "surfaces/api/handlers/alerts": ("surfaces/api/test_alerts.py",),
    "surfaces/api/handlers/events": ("surfaces/api/test_events.py",),
    "surfaces/api/handlers/live": ("surfaces/api/test_event_streams.py",),
    "surfaces/cli/metrics": ("surfaces/cli/workers/test_metrics.py",),
    "surfaces/cli/top": ("surfaces/top/test_screen.py",),
    "surfaces/mcp/extra": ("surfaces/test_extras.py",),
    "surfaces/server/extra": ("surfaces/test_extras.py",),
    "surfaces/server/runner": ("surfaces/cli/serving/test_serving.py",),
    "worker/isolation/child": ("worker/isolation/test_isolated_worker.py", "worker/isolation/test_pool.py"),
    "worker/isolation/child_services": ("worker/isolation/test_isolated_worker.py", "worker/isolation/test_relay.py"),
}
"""The few modules whose tests are in a place that no other part of the rule finds."""

CONFORMANCE: Final = {
    "flows": ("flows", "families"),
    "operate": ("commands", "views"),
    "checking": ("intake", "views"),
    "port": (".",),
    "schema": ("database",),
    "store": (".",),
    "throttle": ("flows",),
}
"""The folders of tests/conformance for a room of the engines or of the port, if they do not have its name."""

_IMPORT: Final = re.compile(
    r"^ *from (perdure[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE
)  # faster than a syntax tree
_DECIDES: Final = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.BoolOp, ast.Compare, ast.comprehension),
    ast.Match,
)


class Found(NamedTuple):
    """Where the tests of a module are, and by which part of the rule."""

    rule: str
    tests: list[Path]


def main() -> int:
    """Print the tests of the given modules, or all modules without tests; 1 if there are any of these."""
    if not sys.argv[1:]:
        without = [module for module in modules() if find_tests(module) is None]
        for module in without:
            print(module.relative_to(ROOT))
        return bool(without)
    missing = False
    for name in sys.argv[1:]:
        found = find_tests(Path(name).resolve())
        missing |= found is None
        print(f"{name}: {'no tests' if found is None else found.rule}")
        for path in [] if found is None else found.tests:
            print(f"  {path.relative_to(ROOT)}")
    return missing


def modules() -> list[Path]:
    """Every module of perdure; an `__init__` only joins the others."""
    return sorted(path for path in HOUSE.rglob("*.py") if not path.stem.startswith("__"))


def find_tests(module: Path) -> Found | None:
    """Where its tests are; None if the rule gives no place and the module decides something."""
    place = _place(module)
    for rule, find in _RULES:
        if tests := find(place):
            return Found(rule, tests)
    if decides(module):
        return None
    return Found("no tests of its own, because it decides nothing", _users(TESTS).get(_name(place), []))


def decides(module: Path) -> bool:
    """Whether one of its functions has a branch, a loop or a comparison."""
    functions = (
        node
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return any(isinstance(node, _DECIDES) for function in functions for node in ast.walk(function))


def _own(place: Path) -> list[Path]:
    """`test_<module>.py` in the folder of its room, or a folder of its name."""
    folder = TESTS / place
    return [path for path in (folder.with_name(f"test_{place.name}.py"), folder) if path.exists()]


def _elsewhere(place: Path) -> list[Path]:
    entries = (ELSEWHERE.get(each.as_posix()) for each in (place, *place.parents))
    return [TESTS / path for path in next(filter(None, entries), ())]


def _from_outside(place: Path) -> list[Path]:
    """The deepest folder of tests on its path."""
    if FROM_OUTSIDE.isdisjoint(each.as_posix() for each in place.parents):
        return []
    return [next(TESTS / each for each in place.parents if (TESTS / each).is_dir())]


def _of_the_port(place: Path) -> list[Path]:
    """The tests of the port for a module of an engine or of `storage/`, and those of that engine alone."""
    if place.parts[0] not in {"engines", "storage"}:
        return []
    of_engine = place.parts[0] == "engines"
    room = place.parts[2 if of_engine else 1]
    folders = [TESTS / "conformance" / name for name in CONFORMANCE.get(room, (room,))]
    if of_engine:
        folders.append(TESTS.joinpath(*place.parts[: 3 if len(place.parts) > 3 else 2]))  # noqa: PLR2004 - engine, room
    return [folder for folder in folders if folder.is_dir()]


def _in_its_room(place: Path) -> list[Path]:
    """The tests that import it, in the nearest folder on its path that has tests."""
    room = next(TESTS / each for each in place.parents if (TESTS / each).is_dir())
    return [] if room == TESTS else [path for path in _users(TESTS).get(_name(place), []) if room in path.parents]


def _of_the_whole(place: Path) -> list[Path]:
    """The tests of the nearest modules of its room that use it, directly or through others."""
    seen = following = {place}
    while following:
        users = {_place(user) for part in following for user in _users(HOUSE).get(_name(part), [])}
        following = {user for user in users if _room(user) == _room(place)} - seen
        if tests := {test for user in following for test in [*_own(user), *_in_its_room(user)]}:
            return sorted(tests)
        seen = seen | following
    return []


_RULES: Final[tuple[tuple[str, Callable[[Path], list[Path]]], ...]] = (
    ("its own tests", _own),
    ("the tests that are named for it in tools/tests_of.py", _elsewhere),
    ("the tests of its room, which reach it from outside", _from_outside),
    ("the tests of the port, on both engines", _of_the_port),
    ("the tests of its room that import it", _in_its_room),
    ("the tests of what it is a part of", _of_the_whole),
)


def _place(module: Path) -> Path:
    """A module as a path below the package, without `.py`."""
    return module.relative_to(HOUSE).with_suffix("")


def _name(place: Path) -> str:
    return ".".join(("perdure", *place.parts))


def _room(place: Path) -> tuple[str, ...]:
    """Its room; of a surface, that surface."""
    return place.parts[: 2 if place.parts[0] == "surfaces" else 1]


@cache
def _users(folder: Path) -> dict[str, list[Path]]:
    """The tests, or the modules, that import each module, also by a name that its package passes on."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("test_*.py" if folder == TESTS else "*.py")):
        for module in sorted(set(_imported(path.read_text("utf-8")))):
            found.setdefault(module, []).append(path)
    return found


def _imported(text: str) -> Iterator[str]:
    for package, names in _IMPORT.findall(text):
        yield package
        for name in re.findall(r"(\w+)(?: as \w+)?,?", names):
            yield _passed_on(package).get(name, f"{package}.{name}")


@cache
def _passed_on(package: str) -> dict[str, str]:
    """The names that a package takes from its modules, each with its module."""
    init = ROOT.joinpath("src", *package.split("."), "__init__.py")
    if not init.is_file():
        return {}
    taken = (node for node in ast.parse(init.read_text("utf-8")).body if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: str(node.module) for node in taken for alias in node.names}


if __name__ == "__main__":
    sys.exit(main())
