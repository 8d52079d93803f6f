"""Make a picture of a page small: 256 colours are enough for text, lines and flat areas.

python tools/small_png.py FILE.png …        each file is replaced
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Final

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOURS: Final = 256
_FREQUENT: Final = 144
_UNLIKE: Final = 150
_RGB: Final = 2
_RGBA: Final = 6


def shrink(picture: bytes) -> bytes:
    """The picture with 256 colours; others become the nearest of them. Alpha is left out."""
    header, packed = _chunks(picture)
    width, height, depth, sort = struct.unpack(">IIBB", header[:10])
    if depth != 8 or sort not in {_RGB, _RGBA} or header[12]:  # noqa: PLR2004 - bits
        raise ValueError("a picture with 8 bits a channel, without interlacing, is needed")
    size = 3 if sort == _RGB else 4
    rows = _rows(zlib.decompress(packed), width * size, size, height)
    pixels = [[bytes(row[at : at + 3]) for at in range(0, len(row), size)] for row in rows]
    counted = Counter(pixel for row in pixels for pixel in row)
    palette = _palette([colour for colour, _ in counted.most_common()])
    index = {colour: number for number, colour in enumerate(palette)}
    for colour in counted.keys() - index.keys():
        index[colour] = min(range(len(palette)), key=lambda number: _distance(palette[number], colour))
    data = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(data, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, body) for name, body in parts)


def _palette(colours: list[bytes]) -> list[bytes]:
    """The most frequent colours, then those that are unlike all of them: thin lines have rare ones."""
    palette = colours[:_FREQUENT]
    for colour in colours[_FREQUENT:]:
        if len(palette) < _COLOURS and min(_distance(colour, known) for known in palette) > _UNLIKE:
            palette.append(colour)
    return palette


def _chunks(picture: bytes) -> tuple[bytes, bytes]:
    if not picture.startswith(SIGNATURE):
        raise ValueError("not a PNG")
    header, packed, at = b"", b"", len(SIGNATURE)
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        name, body = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        if name == b"IHDR":
            header = body
        elif name == b"IDAT":
            packed += body
        at += length + 12
    return header, packed


def _rows(raw: bytes, length: int, size: int, height: int) -> list[bytearray]:
    """Undo the filters: each byte was stored as its difference to bytes on its left and above it."""
    rows: list[bytearray] = []
    above = bytearray(length)
    for number in range(height):
        start = number * (length + 1)
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + length])
        for at in range(length) if kind else ():
            left = row[at - size] if at >= size else 0
            corner = above[at - size] if at >= size else 0
            row[at] = (row[at] + _foretold(kind, left, above[at], corner)) & 255
        rows.append(row)
        above = row
    return rows


def _foretold(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:  # noqa: PLR2004 - the last is Paeth's
        return (0, left, up, (left + up) // 2)[kind]
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def _distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_bytes(shrink(path.read_bytes()))
