"""Tracebacks as people read them."""

from __future__ import annotations

import re

from perdure.surfaces.desk.view.text import visible
from perdure.surfaces.desk.view.tracebacks import traceback


def test_the_frames_of_libraries_are_paler_and_nothing_is_left_out() -> None:
    text = """Traceback (most recent call last):
  File "/app/jobs.py", line 3, in charge
    pay(<order>)
  File "/venv/lib/python3.12/site-packages/httpx/client.py", line 9, in post
    return self.send()
           ^^^^^^^^^^^
  File "/app/\u202epay.py", line 1, in pay
    raise ValueError
ValueError: no
"""
    shown = traceback(text)
    [library] = re.findall(r'<span class="library">(.*?)</span>', shown, re.DOTALL)
    assert library.startswith("  File &#34;/venv/lib")
    assert library.endswith("^\n")
    assert "pay(&lt;order&gt;)" in shown
    assert "U+202E" in shown
    assert str(shown).replace(f'<span class="library">{library}</span>', library) == visible(text)
    assert traceback("x" * 30_000).endswith("…")
    assert traceback("") == ""


def test_frames_of_perdure_are_library_and_those_of_groups_are_found_in_their_frames() -> None:
    inside = '  | File "/x/src/perdure/worker/run.py", line 1, in run\n  |   go()\n'
    assert 'class="library"' in traceback(inside)
    assert 'class="library"' in traceback('  File "<frozen importlib>", line 1, in load\n')
    assert 'class="library"' not in traceback('  File "/app/libs/pay.py", line 1, in pay\n    go()\n')
