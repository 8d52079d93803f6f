"""A page of the docs as a program: its examples, in order, in one namespace and one folder.

What a fence says after its language decides what becomes of the example:

- ```python                runs here; a bare `await` is allowed, all of a page on one event loop
- ```python notest: why    is shown only
- ```console run           each line that begins with `$ ` is run by a shell, and must succeed
- ```console background    the same, but it keeps running until the page ends, and must then stop in good order
- ```console kill          is shown only; the newest background process is killed with SIGKILL

Python whose first line is `# jobs.py` is written to that file, which later examples import and commands load. Other
fences are shown only. A fence inside an HTML comment runs too: what readers need not see.
Run as a program with the path of a page, it plays that page in the current directory.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

_FENCE: Final = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# (\w+\.py)\n")
_STOP_WITHIN: Final = 30.0
_COMMAND_WITHIN: Final = 60.0


@dataclass(frozen=True)
class Example:
    """One fence: its language, what else its first line says, its text, and the line of the page it begins on."""

    language: str
    says: str
    text: str
    line: int

    @property
    def is_skipped(self) -> bool:
        """Whether it is shown only, although it is Python."""
        return self.says.startswith("notest")

    @property
    def file(self) -> str | None:
        """The file it is to be written to."""
        found = _FILE.match(self.text)
        return found[1] if found else None


def examples(page: str) -> Iterator[Example]:
    """Every fence of a page, in order."""
    for found in _FENCE.finditer(page):
        line = page.count("\n", 0, found.start(3)) + 1
        yield Example(found[1], found[2].strip(), found[3], line)


class Player:
    """Plays the examples of one page in the current directory."""

    def __init__(self, page: Path) -> None:
        self._page = page
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._background: list[tuple[str, subprocess.Popen[bytes]]] = []

    def play(self) -> None:
        """Play them all; raises what the first that fails has raised."""
        try:
            with asyncio.Runner() as runner:
                for example in examples(self._page.read_text(encoding="utf-8")):
                    self._play_one(example, runner)
        finally:
            self._end_background()

    def _play_one(self, example: Example, runner: asyncio.Runner) -> None:
        if example.language == "console":
            self._console(example)
        elif example.language == "python" and not example.is_skipped:
            if example.file:
                Path(example.file).write_text(example.text, encoding="utf-8")
            else:
                self._python(example, runner)

    def _python(self, example: Example, runner: asyncio.Runner) -> None:
        text = "\n" * (example.line - 1) + example.text  # so that a traceback names the line of the page
        code: CodeType = compile(text, str(self._page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = FunctionType(code, self._namespace)()
        if inspect.iscoroutine(result):
            runner.run(result)

    def _console(self, example: Example) -> None:
        if example.says == "kill":
            _, process = self._background.pop()
            process.kill()
            process.wait(_STOP_WITHIN)
        if example.says not in {"run", "background"}:
            return
        for line in example.text.splitlines():
            if not line.startswith("$ "):
                continue
            command = line.removeprefix("$ ")
            if example.says == "background":
                # exec: the signal must reach the program and not its shell
                self._background.append((command, subprocess.Popen(["bash", "-c", f"exec {command}"])))
            else:
                subprocess.run(["bash", "-c", command], check=True, timeout=_COMMAND_WITHIN)

    def _end_background(self) -> None:
        for _, process in self._background:
            process.send_signal(signal.SIGTERM)
        for command, process in self._background:
            code = process.wait(_STOP_WITHIN)
            if code != 0:
                raise AssertionError(f"{command!r} ended with {code}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    Player(Path(sys.argv[1])).play()
