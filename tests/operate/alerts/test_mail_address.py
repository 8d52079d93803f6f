"""Nothing in the address of a channel gets into a mail as a header."""

from __future__ import annotations

import pytest

from perdure.errors import ArgumentError
from perdure.operate.alerts.mail_address import read_mail_address


def test_no_header_fits_into_an_address_of_a_mail() -> None:
    for text in ("a@b.c%0d%0aBcc:x@y.z", "a@b.c%0aX", "<a@b.c>", "a b@c.d"):
        with pytest.raises(ArgumentError, match="no e-mail address"):
            read_mail_address("address", f"smtp://localhost/?from={text}&to=d@e.f")
