"""Pictures of the docs: each is shown somewhere, and small."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from tools.small_png import SIGNATURE, shrink

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "images").glob("*.png"))
LARGEST = 150_000


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_shown_and_small(picture: Path) -> None:
    assert picture.stat().st_size <= LARGEST
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"images/{picture.name})" in page.read_text() for page in pages)


def test_a_small_picture_has_the_colours_of_the_large_one() -> None:
    """Each row below is the same two colours, stored with another filter."""
    one, two = (200, 30, 10), (210, 30, 0)
    after = bytes((b - a) & 255 for a, b in zip(one, two, strict=True))
    rows = [
        b"\0" + bytes(one + two),
        b"\1" + bytes(one) + after,
        b"\2" + bytes(6),
        b"\3"
        + bytes((a - a // 2) & 255 for a in one)
        + bytes((b - (a + b) // 2) & 255 for a, b in zip(one, two, strict=True)),
        b"\4" + bytes(6),
    ]
    head = struct.pack(">IIBBBBB", 2, len(rows), 8, 2, 0, 0, 0)
    large = SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")
    small = shrink(large)
    assert chunk(b"PLTE", bytes(one + two)) in small
    assert chunk(b"IDAT", zlib.compress(b"\0\0\1" * len(rows), 9)) in small
    with pytest.raises(ValueError, match="not a PNG"):
        shrink(b"GIF89a")
