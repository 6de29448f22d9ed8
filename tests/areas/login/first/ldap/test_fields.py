"""Tests of the configuration of a directory: accepted values, and values that are refused before they are stored."""

import json

import pytest
from pydantic import ValidationError

from sallyport.areas.directory.directory import split_url
from sallyport.areas.login.first.fields import DEFAULT_FILTER, LdapFields
from sallyport.outgoing.fields import revealed, shown
from tests.peers.authority import Authority

LEAST = {"servers": ["ldaps://dc1.example.com"], "baseDN": "dc=example,dc=com"}


def refused(**fields: object) -> str:
    """Return the error message for these fields, which are added to the required fields."""
    with pytest.raises(ValidationError) as caught:
        LdapFields.model_validate({**LEAST, **fields})
    return " ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in caught.value.errors())


def test_the_defaults() -> None:
    """The default filter finds the users of Active Directory and of OpenLDAP. By default no password is remembered."""
    fields = LdapFields.model_validate(LEAST)
    assert (fields.userFilter, fields.cacheSeconds, fields.timeoutSeconds) == (DEFAULT_FILTER, 0, 5)
    assert (fields.startTls, fields.winbind, fields.bindDN) == (False, False, None)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("ldap://localhost", ("ldap", "localhost", 389)),
        ("ldaps://dc1.example.com/", ("ldaps", "dc1.example.com", 636)),
        ("ldaps://[2001:db8::1]:3269", ("ldaps", "2001:db8::1", 3269)),
    ],
)
def test_urls(url: str, parts: tuple[str, str, int]) -> None:
    """A URL has a scheme, a host and optionally a port."""
    assert split_url(url) == parts


@pytest.mark.parametrize(
    "url",
    [
        "http://dc1", "dc1.example.com", "ldaps://", "ldaps://dc1/dc=example", "ldaps://dc1?uid", "ldaps://u:p@dc1",
        "ldaps://dc1:0x1", "ldaps://dc1:70000", "ldaps://dc 1", "ldapi://%2ftmp%2fs", "ldaps://2130706433",
        "ldaps://[dc1]", "ldaps://[fe80::1%eth0]", "ldaps://dc1\r\nx", "",
    ],
)  # fmt: skip
def test_an_invalid_server_is_refused(url: str) -> None:
    """Any other text is refused. The message does not contain it."""
    assert "servers.0: must be a URL such as ldaps://" in refused(servers=[url])


def test_passwords_never_go_in_clear() -> None:
    """ldap:// needs StartTLS, unless the server is this machine."""
    assert "sends passwords unencrypted" in refused(servers=["ldaps://dc1", "ldap://dc2"])
    for fields in ({"servers": ["ldap://dc2"], "startTls": "yes"}, {"servers": ["ldap://127.0.0.1:3890"]}):
        LdapFields.model_validate({**LEAST, **fields})


def test_the_service_account_is_whole() -> None:
    """A bind DN needs a password, because the bind would be anonymous without one."""
    assert "belong together" in refused(bindDN="cn=sallyport")
    assert "belong together" in refused(bindPassword="secret")
    assert "bindPassword" in refused(bindDN="cn=sallyport", bindPassword="")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("uid={user}", "in parentheses"),
        ("(uid={user}", "in parentheses"),
        ("(uid={user}))", "in parentheses"),
        ("(uid={user})(cn={user})", "in parentheses"),
        ("(uid=ann)", "with {user}"),
        ("({user}=ann)", "with {user}"),
        ("(&(uid={user})({user}))", "with {user}"),
        ("(uid={user}{user}x)", "at most once in each comparison"),
        ("(uid=*{user})", "without *"),
        ("(uid=\\2a{user})", "without *"),
    ],
)
def test_an_invalid_filter_is_refused(pattern: str, why: str) -> None:
    """A filter must compare {user} with the value of an attribute, so that the name of the entry can be
    compared too."""
    assert why in refused(userFilter=pattern)


def test_filters() -> None:
    """{user} may be part of a longer value, and the filter may have other conditions."""
    for pattern in ("(mail={user}@example.com)", "(&(objectClass=person)(|(uid={user})(cn={user})))"):
        assert LdapFields.model_validate({**LEAST, "userFilter": pattern}).userFilter == pattern


def test_certificates_are_read_at_once() -> None:
    """A text that is not PEM is refused when it is set, and not by the first login."""
    pem = Authority("A test's CA").pem
    assert LdapFields.model_validate({**LEAST, "caCertificate": pem}).caCertificate == pem
    assert "caCertificate: must be certificates in PEM" in refused(caCertificate="-----BEGIN CERTIFICATE-----\nx")


@pytest.mark.parametrize(
    "fields",
    [
        {"servers": []}, {"servers": ["ldaps://dc1"] * 9}, {"baseDN": ""}, {"baseDN": "example.com"},
        {"cacheSeconds": 301}, {"cacheSeconds": -1}, {"timeoutSeconds": 0}, {"timeoutSeconds": 31},
    ],
)  # fmt: skip
def test_limits(fields: dict[str, object]) -> None:
    """Each field has limits."""
    assert next(iter(fields)) in refused(**fields)


def test_an_unknown_field_is_refused() -> None:
    """The message lists the known fields, and does not repeat the unknown one."""
    message = refused(tls=True)
    assert "unknown field: the known fields are servers" in message and "tls" not in message.replace("startTls", "")


def test_the_password_is_sealed_and_not_shown() -> None:
    """The fields that are shown do not contain the password.

    The sealed fields contain it, and can be read back unchanged.
    """
    fields = LdapFields.model_validate({**LEAST, "bindDN": "cn=s", "bindPassword": "t0p"})
    assert "t0p" not in repr(shown(fields)) and "t0p" not in repr(fields)
    assert LdapFields.model_validate(json.loads(json.dumps(revealed(fields)))) == fields
