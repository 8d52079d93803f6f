"""A newcomer finds the tests of every module by one rule, which CONTRIBUTING.md has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.tests_of import CONFORMANCE, ELSEWHERE, FROM_OUTSIDE, HOUSE, ROOT, TESTS, decides, find_tests, modules


def found(module: str) -> tuple[str, list[str]]:
    """The part of the rule, and the tests, of a module that has some."""
    known = find_tests(HOUSE / f"{module}.py")
    assert known is not None
    return known.rule, [path.relative_to(TESTS).as_posix() for path in known.tests]


def test_every_module_that_decides_something_has_tests() -> None:
    """If this fails: write `tests/<room>/test_<module>.py`, or see CONTRIBUTING.md."""
    assert len(modules()) > 700
    assert [str(module.relative_to(ROOT)) for module in modules() if find_tests(module) is None] == []


@pytest.mark.parametrize(
    ("module", "rule", "test"),
    [
        ("policy/retries/jitter", "its own tests", "policy/retries/test_jitter.py"),
        ("engines/sqlite/claims/claims", "the tests of the port", "conformance/claims"),
        ("storage/fleet/leaders", "the tests of the port", "conformance/fleet"),
        ("surfaces/cli/jobs/dead", "the tests of its room, which reach it from outside", "surfaces/cli/jobs"),
        ("surfaces/api/handlers/alerts", "the tests that are named", "surfaces/api/test_alerts.py"),
        ("signals/otel/samplers", "the tests of its room that import it", "signals/otel/test_sampling.py"),
        ("operate/why/awaited", "the tests of what it is a part of", "operate/why/test_why.py"),
    ],
)
def test_each_part_of_the_rule_finds_tests(module: str, rule: str, test: str) -> None:
    by, tests = found(module)
    assert by.startswith(rule)
    assert test in tests


def test_a_module_that_decides_nothing_needs_no_tests_of_its_own(tmp_path: Path) -> None:
    module = tmp_path / "records.py"
    module.write_text("if True:\n    N = 1\n\n\ndef name(a: str) -> str:\n    return f'{a}!'\n")
    assert not decides(module)
    module.write_text("def name(a: str | None) -> str:\n    return a or 'none'\n")
    assert decides(module)


def test_the_named_places_exist_and_are_needed() -> None:
    """An entry of a module that has tests of its own, or is gone, is left over."""
    for entry, paths in ELSEWHERE.items():
        members = [HOUSE / f"{entry}.py"] if (HOUSE / f"{entry}.py").is_file() else [*(HOUSE / entry).rglob("*.py")]
        assert any(found(_below(member))[0].startswith("the tests that are named") for member in members), entry
        assert not [path for path in paths if not (TESTS / path).exists()], entry
    for room in FROM_OUTSIDE:
        assert (HOUSE / room / "__init__.py").is_file(), room
        assert [*(TESTS / room).rglob("test_*.py")], room
    folders = {folder for folders in CONFORMANCE.values() for folder in folders}
    assert not [folder for folder in folders if not (TESTS / "conformance" / folder).is_dir()]


def _below(module: Path) -> str:
    return module.relative_to(HOUSE).with_suffix("").as_posix()
