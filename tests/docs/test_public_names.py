"""Docs and examples use what users may use: public modules, and no names with an underscore."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.page import examples

ROOT = Path(__file__).parents[2]
SOURCES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")])
PUBLIC = {
    "perdure",
    "perdure.desk",
    "perdure.diagnostics",
    "perdure.events",
    "perdure.integrations",
    "perdure.metrics",
    "perdure.testing",
    "perdure.otel",
    "perdure.webhooks",
}
OF_PYTHON = {"os._exit"}


def programs(source: Path) -> Iterator[tuple[int, str]]:
    """The Python of a page or a file, with the line before its first."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".py":
        yield 0, text
    else:
        yield from (
            (one.line - 1, one.text) for one in examples(text) if one.language == "python" and not one.is_skipped
        )


def private_names(program: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(program)):
        modules: list[str] = []
        match node:
            case ast.ImportFrom(module=str(module), lineno=line):
                modules = [module]
            case ast.Import(names=names, lineno=line):
                modules = [name.name for name in names]
            case ast.Attribute(attr=attribute) if attribute.startswith("_") and not attribute.startswith("__"):
                if ast.unparse(node) not in OF_PYTHON:
                    yield node.lineno, ast.unparse(node)
        for module in modules:
            room = ".".join(module.split(".")[:2])
            if room.startswith("perdure.") and room not in PUBLIC:
                yield line, module


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(ROOT)))
def test_examples_use_public_names_only(source: Path) -> None:
    found = [f"line {line + at}: {name}" for line, text in programs(source) for at, name in private_names(text)]
    assert not found, found


@pytest.mark.parametrize(
    "program",
    ["from perdure.worker.settings import Queue", "import perdure.policy.opening", "worker._settings", "a.b()._c = 1"],
)
def test_a_private_name_is_found(program: str) -> None:
    assert [*private_names(program)]
