"""The import contracts in `pyproject.toml` leave no module out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "perdure"
PUBLIC = {
    *("perdure.alerts", "perdure.desk", "perdure.diagnostics", "perdure.events", "perdure.integrations", "perdure.mcp"),
    *("perdure.metrics", "perdure.otel", "perdure.testing", "perdure.webhooks"),
}


def contract(name: str) -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (found,) = (each for each in settings["tool"]["importlinter"]["contracts"] if each["name"].startswith(name))
    return dict(found)


def modules_of(folder: Path, package: str) -> set[str]:
    files = {f"{package}.{file.stem}" for file in folder.glob("*.py") if file.stem != "__init__"}
    return files | {f"{package}.{init.parent.name}" for init in folder.glob("*/__init__.py")}


def test_every_module_outside_the_engines_is_kept_from_importing_one() -> None:
    assert set(contract("Only the app knows")["source_modules"]) == modules_of(HOUSE, "perdure") - {"perdure.engines"}


def test_the_systems_are_kept_from_every_private_module() -> None:
    private = modules_of(HOUSE, "perdure") - PUBLIC - {"perdure.__main__"} | modules_of(
        HOUSE / "events", "perdure.events"
    )
    assert set(contract("The systems use public names only")["forbidden_modules"]) == private
