"""Both engines answer each method of the port in the same file and the same class."""

from __future__ import annotations

import ast
from pathlib import Path

HOUSE = Path(__file__).parents[2] / "src" / "perdure"
OF_THE_STORE = {"open", "close", "abandon", "sibling"}
ONE_ENGINE_ONLY = {
    "checkpoint",  # PostgreSQL gathers the checkpoints of many handlers in one statement: claims/checkpoints.py
    "connection",  # a property of the transaction that effects run in
}


def classes_of(file: Path) -> list[ast.ClassDef]:
    return [node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]


def methods_of(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def port() -> set[str]:
    protocols = [
        node
        for file in (HOUSE / "storage").rglob("*.py")
        for node in classes_of(file)
        if any("Protocol" in ast.unparse(base) for base in node.bases)
    ]
    return set().union(*map(methods_of, protocols))


def places(engine: str) -> dict[str, set[tuple[str, str]]]:
    """Where an engine defines each method: file and class."""
    found: dict[str, set[tuple[str, str]]] = {}
    root = HOUSE / "engines" / engine
    for file in root.rglob("*.py"):
        for node in classes_of(file):
            for method in methods_of(node):
                found.setdefault(method, set()).add((str(file.relative_to(root)), node.name))
    return found


def test_both_engines_answer_each_method_of_the_port_in_the_same_place() -> None:
    sqlite, postgres = places("sqlite"), places("postgres")
    methods = port() - OF_THE_STORE - ONE_ENGINE_ONLY
    assert len(methods) > 100
    assert not [method for method in sorted(methods) if not sqlite.get(method, set()) & postgres.get(method, set())]
