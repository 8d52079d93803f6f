"""Addresses of channels as people write them: each mistake is refused by its name, and none of it tells a secret."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.errors import ArgumentError
from perdure.operate.alerts.addresses import check_address, make_channel


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ops@example.com", "must begin with a scheme"),
        ("slak://TokenA/TokenB/s3cret", "scheme that is not known: slak://; is there a typo?"),
        ("slack://s3cret", "is not what slack:// needs"),
        ("dbus://s3cret", "it acts on the machine of the worker"),
        ("syslog://s3cret", "it acts on the machine of the worker"),
        ("mailto://a:s3cret@example.com", "use smtp://"),
        ("json://s3cret.example.com", "use https://"),
        ("mmost://example.com/s3cret?redirect=yes", "must not set redirect="),
        ("discord://1234/s3cret?retry=5", "must not set retry="),
        ("https://user:s3cret@example.com", "must have no user name or password"),
        ("https://", "must name a host"),
        ("slack://", "is not what slack:// needs"),
        ("syslog://", "it acts on the machine of the worker"),
        ("smtp://user:s3cret@mail.example.com/?from=a@b.c", "must name 1 to 50 receivers"),
        ("smtp://user:s3cret@mail.example.com/?from=a@b.c&to=d", "has no e-mail address in to="),
        ("smtp://user:s3cret@mail.example.com/?from=a@b.c&to=d@e.f&tls=none", "would send its password in the clear"),
        ("smtp://user:s3cret@mail.example.com/?from=a@b.c&to=d@e.f&cc=x@y.z", "a parameter beside from, to and tls"),
        ("smtp://user:s3cret@mail.example.com:0x/?from=a@b.c&to=d@e.f", "cannot be read"),
        ("smtp://user:s3cret/x@mail.example.com/?from=a@b.c&to=d@e.f", "are / .* of a password written as %2F"),
        ("smtp://user:12?s3cret=@mail.example.com/?from=a@b.c&to=d@e.f", "a parameter beside"),
        ("smtp://user:12?from=s3cret&to=d@e.f", "no e-mail address in from="),
        ("https://user:s3cret/x@example.com", "cannot be read"),
        ("https://[s3cret]/x", "cannot be read"),
    ],
)
def test_an_address_with_a_mistake_is_refused_without_telling_its_secret(address: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as refused:
        check_address("address", address)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"address": "env:HOME"}, "address", r"env:HOME holds no valid address: address must begin with a scheme"),
        ({"address": "env:NO-NAME"}, "address", r"must name an environment variable after env:, in letters"),
        ({"address": "smtp://key@mail.example.com/?from=a@b.c&to=d@e.f"}, "address", "holds a secret"),
        ({"address": "sealed:abc"}, "address", "must not begin with sealed:"),
        ({"address": "slack://a b"}, "address", "no spaces"),
        ({"address": ""}, "address", "must be a text"),
        ({"address": "https://example.com"}, "secret", "is missing: it signs"),
        ({"address": "smtp://localhost/?from=a@b.c&to=d@e.f", "secret": "x"}, "secret", "is for webhooks"),
        ({"address": "env:X", "allow_private": "yes"}, "allow_private", "must be True or False"),
        ({"address": "env:X", "secret": "smtp://s3cret"}, "secret", "holds a secret"),
    ],
)
def test_a_channel_that_cannot_be_meant_is_refused_by_name(given: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as refused:
        make_channel("ops", **given)
    assert refused.value.field == field
    assert "NO-NAME" not in str(refused.value), "it may be an address that was meant"
