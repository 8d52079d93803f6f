"""What is published: everything that a user needs, and nothing that only the project does."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True, timeout=120)
    return folder


def test_the_wheel_is_typed_and_brings_its_sql(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "perdure/py.typed" in names
    assert "perdure/engines/sqlite/sql/claims/claims.sql" in names
    assert "perdure/engines/postgres/sql/migrations/0001_jobs.sql" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_the_source_distribution_leaves_benchmarks_and_ci_out(built: Path) -> None:
    [source] = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "docs", "tests", "README.md", "LICENSE", "pyproject.toml"} <= folders
    assert not folders & {"benchmarks", ".ci", "requirements", "tools"}


def test_the_package_page_has_links_that_work_outside_the_repository(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith("METADATA")]
    metadata = archive.read(name).decode()
    for label in ("Homepage", "Documentation", "Changelog", "Issues"):
        assert f"Project-URL: {label}, https://" in metadata
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert not [link for link in links if not link.startswith("https://")]


def test_every_page_that_the_readme_leads_to_exists() -> None:
    links = re.findall(r"\]\(https://[^)]+/(?:blob/)?main/([^)#]+)", (ROOT / "README.md").read_text())
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
