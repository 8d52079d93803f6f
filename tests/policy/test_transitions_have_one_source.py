"""Every transition is built in `policy.decide`: worker, rescuer and engines ask there."""

from __future__ import annotations

import ast
from pathlib import Path

import perdure

SOURCE = Path(perdure.__file__).parent
BUILDS = "policy/decide.py"


def test_no_other_module_uses_the_constructors_of_transitions() -> None:
    found = {
        f"{module.relative_to(SOURCE)}: {alias.name}"
        for module in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in {"perdure.domain.jobs.transition", "perdure.domain"}
        for alias in node.names
        if alias.name != "Transition" and (node.module != "perdure.domain" or alias.name == "transition")
    }
    assert {one.partition(": ")[0] for one in found} == {BUILDS}
