"""What we did not write: as it was published, with its licence."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

VENDOR = files("perdure.surfaces.desk") / "static" / "vendor"
HTMX = (  # htmx.org 4.0.1, dist/htmx.min.js of the package
    "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
)


def test_htmx_is_the_published_file() -> None:
    body = (VENDOR / "htmx.min.js").read_bytes()
    assert (hashlib.sha256(body).hexdigest(), base64.b64encode(hashlib.sha384(body).digest()).decode()) == HTMX
    assert b"4.0.1" in body


def test_nothing_else_is_vendored_and_the_licence_is_there() -> None:
    assert {entry.name for entry in VENDOR.iterdir()} == {"htmx.min.js", "htmx.LICENSE"}
    assert "Zero-Clause BSD" in (VENDOR / "htmx.LICENSE").read_text()
