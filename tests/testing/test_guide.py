"""What the guide shows, works; and so does the example that comes with it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.testing.projects import run_pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "test-your-jobs.md"
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_guide_runs(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") + text.count("```toml")
    for name, code in blocks:
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(code)
    counts, said = run_pytest(tmp_path)
    assert counts == {"passed": text.count("def test_")}, said


def test_a_miss_reads_as_the_guide_says(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    for name, code in BLOCK.findall(text):
        if name in {"jobs.py", "pyproject.toml"}:
            (tmp_path / name).write_text(code, encoding="utf-8")
    (tmp_path / "test_miss.py").write_text(
        "import jobs\n"
        "async def test_miss(perdure_sandbox):\n"
        "    await jobs.close_day('monday')\n"
        "    perdure_sandbox.assert_enqueued(jobs.send_alert, channel='#dev')\n",
        encoding="utf-8",
    )
    _, said = run_pytest(tmp_path)
    for line in shown.splitlines():
        assert line in said


def test_the_example_passes_its_own_tests() -> None:
    counts, said = run_pytest(ROOT / "examples" / "testing")
    assert counts == {"passed": 7}, said
