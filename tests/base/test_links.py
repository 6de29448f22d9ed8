"""The base URL of links to the service."""

import socket
from pathlib import Path

import pytest
from pydantic import ValidationError

from sallyport.settings.settings import Settings
from sallyport.settings.values import Address

PEM = Path("x.pem")


@pytest.mark.parametrize(
    ("bind", "bound", "base"),
    [
        ("192.0.2.1:80", None, "http://192.0.2.1:80"),
        ("127.0.0.1:0", Address("127.0.0.1", 4711), "http://127.0.0.1:4711"),
        ("[2001:db8::1]:8080", None, "http://[2001:db8::1]:8080"),
        ("0.0.0.0:8080", None, f"http://{socket.gethostname()}:8080"),
        ("[::]:0", Address("::", 4711), f"http://{socket.gethostname()}:4711"),
    ],
)
def test_the_default_base_is_the_address_of_the_listener(bind: str, bound: Address | None, base: str) -> None:
    """The base URL has the port of the listener. If the listener has all addresses, it has the name of the machine.
    With TLS its scheme is https.
    """
    assert Settings.model_validate({"http_bind": bind}).link_base(bound) == base
    tls = Settings.model_validate({"http_bind": bind, "tls_certificate": PEM, "tls_key": PEM})
    assert tls.link_base(bound) == base.replace("http:", "https:")


@pytest.mark.parametrize("given", ["https://a.example", "https://a.example/", "http://a.example:81/x//"])
def test_public_url_overrides_the_listener(given: str) -> None:
    """The setting public_url overrides the address of the listener. Its trailing slashes are removed."""
    assert Settings(public_url=given).link_base(Address("127.0.0.1", 1)) == given.rstrip("/")


@pytest.mark.parametrize(
    "given",
    ["a.example", "ftp://a.example", "https://", "https://u:hunter2@a", "https://a/?q", "https://a/#f", "https://ä",
     "https://a\n", "https://[a", "https://a b", "https://a:x", "https://a:99999"],
)  # fmt: skip
def test_an_invalid_public_url_is_refused(given: str) -> None:
    """A base URL with another scheme, without a host, with a password or with a query is refused, and the value is not
    repeated.
    """
    with pytest.raises(ValidationError) as raised:
        Settings(public_url=given)
    assert "hunter2" not in str(raised.value)
