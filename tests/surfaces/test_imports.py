"""What is loaded when: a producer pays for no command line, and `perdure --help` is quick."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_import_perdure_loads_no_command_line_and_no_driver() -> None:
    heavy = ("typer", "rich", "apsw", "psycopg", "sqlite3", "structlog")
    assert run(f"import perdure, sys; print([m for m in {heavy!r} if m in sys.modules])").strip() == "[]"


def test_the_entry_point_loads_typer_only_when_it_is_called() -> None:
    assert run("from perdure.surfaces.cli import main; import sys; print('typer' in sys.modules)").strip() == "False"


def test_the_command_line_loads_no_driver_before_it_needs_one() -> None:
    code = "import perdure.surfaces.cli.commands, sys; print([m for m in ('apsw', 'psycopg') if m in sys.modules])"
    assert run(code).strip() == "[]"
