"""Keep docs/reference/behaviours.md true: every numbered behaviour has a test, and no test cites an unknown number.

A test claims a behaviour by its number: `test_a3_wait_doubles` claims A3, `test_c2_c3_ramp` claims C2 and C3. A to E
describe systems, so only tests of the rebuilt systems count; F describes the engine. G are the promises of
docs/explanation/promises.md. `python tools/behaviours.py` checks; with `--write` it brings the page up to date.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "behaviours.md"
PROMISES: Final = ROOT / "docs" / "explanation" / "promises.md"
_SECTION: Final = re.compile(r"^### ([A-F]\d+)\b.*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_PROOF: Final = re.compile(r"^Proven by .*?(?=\n\n|\n*\Z)", re.MULTILINE | re.DOTALL)
_TEST: Final = re.compile(r"def (test_((?:[a-g]\d+_)+)\w*)")
_SHOWN: Final = 6

Claims = dict[str, list[tuple[str, str]]]


def main() -> int:
    """Check or write; the number of faults."""
    page = PAGE.read_text(encoding="utf-8")
    systems, engine = claims("systems/tests"), claims("tests")
    numbers = [found[1] for found in _SECTION.finditer(page)]
    proofs = {number: (engine if number.startswith("F") else systems).get(number, []) for number in numbers}
    written = _SECTION.sub(lambda found: with_proof(found[0], proofs[found[1]]), page)
    faults = [f"{number} has no test" for number in numbers if not proofs[number]]
    faults += unknown_numbers({**engine, **systems}, {*numbers, *promises()})
    if "--write" in sys.argv:
        PAGE.write_text(written, encoding="utf-8")
    elif written != page:
        faults.append(f"{PAGE.relative_to(ROOT)} is not up to date: run python tools/behaviours.py --write")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{sum(1 for tests in proofs.values() if tests)} of {len(numbers)} behaviours have a test")
    return min(len(faults), 1)


def claims(folder: str) -> Claims:
    """The tests below a folder, by the numbers that they carry, as (name, path)."""
    found: Claims = defaultdict(list)
    for path in sorted((ROOT / folder).rglob("test_*.py")):
        for name, numbers in _TEST.findall(path.read_text(encoding="utf-8")):
            for number in dict.fromkeys(numbers.strip("_").upper().split("_")):
                found[number].append((name, path.relative_to(ROOT).as_posix()))
    return found


def promises() -> set[str]:
    """The numbers of the engine's promises."""
    return set(re.findall(r"\b(G\d+)\b", PROMISES.read_text(encoding="utf-8")))


def unknown_numbers(found: Claims, known: set[str]) -> list[str]:
    """A fault for each test that cites a number without a behaviour."""
    return [
        f"{path}: {name} cites {number}, which no page describes"
        for number, tests in sorted(found.items())
        if number not in known
        for name, path in tests
    ]


def with_proof(section: str, tests: list[tuple[str, str]]) -> str:
    """The section with the paragraph that names its tests."""
    links = [f"[`{name}`](../../{path})" for name, path in tests]
    more = f" and {len(links) - _SHOWN} more" if len(links) > _SHOWN else ""
    proof = f"Proven by {', '.join(links[:_SHOWN])}{more}." if links else "Proven by nothing yet."
    body = _PROOF.sub("", section).rstrip()
    return f"{body}\n\n{proof}\n\n"


if __name__ == "__main__":
    sys.exit(main())
