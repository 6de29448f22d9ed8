"""Findings of `sallyport doctor` that follow from the settings alone."""

from pathlib import Path

import pytest
from cryptography import x509

from sallyport.cli.checks.machine import of_people
from sallyport.settings.settings import Settings
from tests.radius.eap.certificates import Authority


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param({"people_bind": ""}, [("ok", "no pages")], id="no pages"),
        pytest.param(
            {"tls": "login.example.org"}, [("ok", "https://login.example.org/mfa and ")], id="TLS of the service"
        ),
        pytest.param({"tls": "*.example.org"}, [("ok", "https://login.example.org/mfa and ")], id="wildcard"),
        pytest.param({"tls": "radius.example.org"}, [("warning", "tls_certificate ")], id="other name"),
        pytest.param(
            {"tls": "radius.example.org", "trusted_proxies": "10.1.2.3"},
            [("ok", "https://login.example.org/mfa and ")],
            id="TLS of a proxy",
        ),
        pytest.param({"trusted_proxies": "10.1.2.0/24"}, [("ok", "https://login.example.org/mfa")], id="proxies"),
        pytest.param({}, [("warning", "people_bind has no TLS")], id="proxy that is not named"),
        pytest.param(
            {"trusted_proxies": "10.0.0.0/8,10.1.2.3"}, [("warning", "trusted_proxies has 10.0.0.0/8:")], id="wide"
        ),
        pytest.param(
            {"trusted_proxies": "2001:db8::/64"}, [("warning", "trusted_proxies has 2001:db8::/64:")], id="wide IPv6"
        ),
    ],
)
def test_the_pages_of_people_get_the_addresses_of_browsers(
    tmp_path: Path, given: dict[str, str], found: list[tuple[str, str]]
) -> None:
    """A warning names a proxy without an entry in trusted_proxies, a network of too many proxies, and a certificate for
    another name."""
    values = {"public_url": "https://login.example.org", "people_bind": "127.0.0.1:8443", **given}
    name = values.pop("tls", "")
    if name:
        values |= {
            "tls_certificate": str(Authority(tmp_path).certificate("", [x509.DNSName(name)]).file),
            "tls_key": "a.key",
        }
    findings = [(each.level.value, each.text) for each in of_people(Settings.model_validate(values))]
    assert [level for level, _ in findings] == [level for level, _ in found]
    assert all(text.startswith(start) for (_, text), (_, start) in zip(findings, found, strict=True))
