"""Two tiers (C15): `-m "not slow and not proof"` on SQLite takes about 10 s, everything on both engines about 60 s."""

from __future__ import annotations

import ast
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FAST = "not slow and not proof"
FULL = "not proof"


def numbers(tier: str) -> set[int]:
    """The numbers of which the tests of a tier speak."""
    found = set[int]()
    for file in HERE.rglob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        is_slow = any(ast.unparse(node) == "pytestmark = pytest.mark.slow" for node in tree.body)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                name := re.match(r"test_c(\d+)_", node.name)
            ):
                marks = {ast.unparse(mark) for mark in node.decorator_list} | (
                    {"pytest.mark.slow"} if is_slow else set()
                )
                left_out = {"pytest.mark.proof"} | ({"pytest.mark.slow"} if tier == FAST else set())
                if not marks & left_out:
                    found.add(int(name[1]))
    return found


def test_c15_both_tiers_speak_of_everything() -> None:
    assert numbers(FAST) == numbers(FULL) == set(range(1, 16))


@pytest.mark.proof
@pytest.mark.parametrize(("tier", "seconds"), [(FAST, 10), (FULL, 60)])
def test_c15_each_tier_takes_its_time(tier: str, seconds: int) -> None:
    """Processor time counts, which other programs of the machine do not change much."""
    began = processor_time()
    command = [sys.executable, "-m", "pytest", str(HERE), "-p", "no:xdist", "-m", tier]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert processor_time() - began < 2 * seconds


def processor_time() -> float:
    """The seconds that ended processes of this one have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
