"""Every Python example in the docs runs, as do the commands marked to be run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.docs.page import examples

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PLAYED_ELSEWHERE = {ROOT / "docs/how-to/test-your-jobs.md"}  # tests/testing/test_guide.py, under pytest itself
PLAYER = Path(__file__).with_name("page.py")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def tell(server: str, sql: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.encode())


def has_python(page: Path) -> bool:
    return page not in PLAYED_ELSEWHERE and any(
        example.language == "python" for example in examples(page.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("page", [page for page in PAGES if has_python(page)], ids=name_of)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In order, in an empty folder; pages that speak of DATABASE_URL get a PostgreSQL database of their own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PERDURE_")}
    database = f"docs_{uuid.uuid4().hex[:12]}"
    server = ""
    if "DATABASE_URL" in page.read_text(encoding="utf-8"):
        server = request.getfixturevalue("postgres_url")
        tell(server, f"CREATE DATABASE {database}")
        env["DATABASE_URL"] = urlsplit(server)._replace(path=f"/{database}").geturl()
    try:
        done = subprocess.run(
            [sys.executable, "-W", "error", PLAYER, page],
            cwd=tmp_path,
            env=env,
            check=False,
            timeout=120,
            capture_output=True,
            text=True,
        )
    finally:
        if server:
            tell(server, f"DROP DATABASE {database} WITH (FORCE)")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_an_example_that_is_not_run_says_why(page: Path) -> None:
    for example in examples(page.read_text(encoding="utf-8")):
        if example.is_skipped:
            assert example.says.partition(":")[2].strip(), f"line {example.line}: write ```python notest: why"


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them in links."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_other_pages_lead_somewhere(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in link and not link.startswith("mailto:"):
            target = page.parent / link if link else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), f"{link}#{anchor}"
