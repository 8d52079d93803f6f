"""The tiers of the tests: a quick one for every change, a long one for the proof (C15)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_c15_the_long_tests_are_a_tier_of_their_own(pytestconfig: pytest.Config) -> None:
    """`make test` leaves out what is marked as proof, and `make proof` runs that and nothing else."""
    assert "not proof" in " ".join(pytestconfig.getini("addopts"))
    recipes = dict(re.findall(r"^(test|proof): .*\n\t(.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert "-m proof" in recipes["proof"]
    assert "proof" not in recipes["test"]
    storms = [path.name for path in (ROOT / "tests").rglob("test_*.py") if "mark.proof" in path.read_text("utf-8")]
    assert {"test_storm.py", "test_schedule_storm.py", "test_rolling_deploy.py"} <= set(storms)
