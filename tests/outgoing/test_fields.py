"""Tests of the values that a provider's fields accept."""

import pytest
from pydantic import ValidationError

from sallyport.areas.mfa.fields import DuoFields, OktaFields, RadiusFields, WebhookFields
from sallyport.base.validation import refusal
from sallyport.outgoing.fields import origin


@pytest.mark.parametrize(
    "url",
    [
        "https://mfa.example.com/hook?a=1",
        "https://mfa.example.com:8443",
        "https://192.0.2.1/x",
        "https://[2001:db8::1]/x",
        "http://127.0.0.1:8000/x",
        "http://localhost/x",
        "http://[::1]:8000/",
    ],
)
def test_a_url_is_https_or_http_on_loopback(url: str) -> None:
    assert WebhookFields(url=url, secret="s").url.startswith(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://mallory.example/x",
        "http://127.0.0.1.example.com/x",
        "http://2130706433/",
        "https://user:pw@mallory.example/",
        "https://user@mallory.example/",
        "https://mallory.example/#x",
        "https://",
        "ftp://mallory.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "mallory.example",
        "https://mallory.example/ x",
        "https://mallory.example/\r\nX: y",
        "https://[fe80::1%25eth0]/",
        "",
    ],
)
def test_another_url_is_refused(url: str) -> None:
    """The message contains the name of the field, but not its value."""
    with pytest.raises(ValidationError) as refused:
        WebhookFields(url=url, secret="s")
    error = refusal(refused.value)
    assert str(error) == "invalid url"
    assert [field.field for field in error.fields] == ["url"]
    assert "mallory" not in error.fields[0].message


@pytest.mark.parametrize("host", ["api-0123.duosecurity.com", "127.0.0.1:8000", "localhost:80", "gateway", "192.0.2.1"])
def test_a_host_is_a_name_or_an_address(host: str) -> None:
    """A port is allowed only on loopback, where plain http is used."""
    assert DuoFields(ikey="DI", skey="s", host=host).host == host
    assert origin(host) == f"{'http' if ':' in host else 'https'}://{host}"


@pytest.mark.parametrize(
    "host",
    ["", "api.example.com:443", "https://api.example.com", "api.example.com/x", "u@api.example.com", "a..b", "-a.b",
     "127.0.0.1:x", "127.0.0.1:", "a b", "a\nb", "2130706433", "x" * 254, "127.0.0.1:80/x", "evil:80@127.0.0.1"],
)  # fmt: skip
def test_an_unsuitable_host_is_refused(host: str) -> None:
    """A URL, a port on another machine, and a text that another parser could read differently are refused."""
    for make in (lambda: DuoFields(ikey="DI", skey="s", host=host), lambda: OktaFields(domain=host, apiToken="t")):
        with pytest.raises(ValidationError):
            make()


def test_the_radius_port() -> None:
    """The port is 1812 by default. It may be given as text, and is 1 to 65535."""
    assert RadiusFields(host="192.0.2.1", secret="s").port == 1812
    assert RadiusFields.model_validate({"host": "h", "secret": "s", "port": "1645"}).port == 1645
    for port in (0, 65536, "x"):
        with pytest.raises(ValidationError):
            RadiusFields.model_validate({"host": "h", "secret": "s", "port": port})


def test_missing_fields_are_named() -> None:
    """All missing fields are reported at once."""
    with pytest.raises(ValidationError) as refused:
        DuoFields.model_validate({})
    assert [field.field for field in refusal(refused.value).fields] == ["ikey", "skey", "host"]
