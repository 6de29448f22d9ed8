"""Tests of the fields of endpoint users and groups: the accepted values, and the form in which they are stored."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from sallyport.areas.users.accounts import fields
from sallyport.areas.users.accounts.bodies import AddUser
from sallyport.areas.users.groups.group import is_active, ttl_seconds
from tests.areas.users.keys import ECDSA, ED25519, RSA, SHORT_RSA, line
from tests.outgoing.costly_keys import LONG_EXPONENT_RSA, LONG_RSA


def stored(check: Callable[[object], str], value: object) -> str | None:
    """Return a value as it is stored, or None if it is refused."""
    try:
        return check(value)
    except PydanticCustomError:
        return None


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("", b"x"), ("x" * 254, b"x"), ("ü" * 127, b"x"), ("a\0b", b"x"), ("a\nb", b"x"), ("a\x9b", b"x"),
        ("ann", b"x" * 129), ("ann", b"a\0b"), ("ann", b"\xff" * 129),
    ],
)  # fmt: skip
def test_values_that_radius_cannot_carry(name: str, password: bytes) -> None:
    """A name has 1 to 253 printable octets.

    A password has at most 128 octets and no NUL. The refusal does not contain the password.
    """
    with pytest.raises(ValidationError) as raised:
        AddUser.model_validate({"domainId": 1, "userName": name, "password": {"hex": password.hex()}})
    assert len(password) < 2 or repr(password) not in str(raised.value)


@pytest.mark.parametrize("comment", ["", " ann@laptop", " a comment, of words"], ids=["none", "host", "words"])
@pytest.mark.parametrize("key", [ED25519, ECDSA, RSA], ids=["ed25519", "ecdsa", "rsa"])
def test_ssh_keys_of_every_kind(key: str, comment: str) -> None:
    """A key may have a comment. Each key is on its own line, and empty lines are removed."""
    text = key + comment
    assert stored(fields.ssh_keys, f"  {text} \r\n\n{ED25519}\n") == f"{text}\n{ED25519}"


def test_no_ssh_keys() -> None:
    """A text of blank lines contains no key."""
    assert stored(fields.ssh_keys, " \n ") == ""


@pytest.mark.parametrize(
    "text",
    [
        "hunter2", "ssh-ed25519", "ssh-ed25519 AAAA", SHORT_RSA, ED25519[:-4],
        ED25519.replace("ssh-ed25519", "ssh-rsa"),
        f'command="id" {ED25519}', f"{ED25519}\nhunter2", "-----BEGIN OPENSSH PRIVATE KEY-----", f"{ED25519} a\tb",
        "ssh-dss AAAAB3NzaC1kc3MAAACBAP", f"{ED25519}x" * 2000,
    ],
)  # fmt: skip
def test_refused_ssh_keys(text: str) -> None:
    """A truncated key, a key of another type, options before the key and a private key are refused.

    The refusal contains none of them.
    """
    with pytest.raises(PydanticCustomError) as raised:
        fields.ssh_keys(text)
    assert "hunter2" not in raised.value.message()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(line(LONG_RSA.public_key()), id="6144 bits"),
        pytest.param(line(LONG_EXPONENT_RSA), id="long exponent"),
        pytest.param("\n".join([ED25519] * 257), id="257 keys"),
    ],
)
def test_costly_ssh_keys(text: str) -> None:
    """RSA keys that have more than 4096 bits or a long exponent are refused. A user may have at most 256 keys."""
    with pytest.raises(PydanticCustomError, match=r"RSA keys of 1024 to 4096 bits|at most 256 keys"):
        fields.ssh_keys(text)


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        ("JBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXP"), ("jbsw y3dp-ehpk 3pxp", "JBSWY3DPEHPK3PXP"),
        ("JBSWY3DPEHPK3PXPJA======", "JBSWY3DPEHPK3PXPJA"), ("", ""), ("JBSWY3DP", None), ("JBSWY3DPEHPK3PX1", None),
        ("A" * 129, None), ("JBSWY3DPEHPK3PXP" + " " * 1009, None),
        ("JBSWY3DPEHPK3PXPJ", None), (True, None), (None, None),
    ],
)  # fmt: skip
def test_seeds_are_base32(text: object, seed: str | None) -> None:
    """A seed is base32 in upper or lower case, with or without blanks.

    A seed that is too short, too long or not base32 is refused.
    """
    assert stored(fields.seed, text) == seed


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", True), ("did:web:example.org:users:ann", True),
        ("did:web:example.org%3A8443", True), ("did:a:b", True), ("", True), ("did:key:", False), ("did::x", False),
        ("DID:key:x", False), ("did:Key:x", False), ("did:web:a%3", False), ("did:web:a/b", False), ("key:x", False),
        ("did:web:x:", False),
    ],
)  # fmt: skip
def test_dids(text: str, good: bool) -> None:
    """A DID has the syntax of DID Core, section 3.1."""
    assert stored(fields.did, text) == (text if good else None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1), ("3600", 3600), ("8h", 28_800), ("1h 30m", 5400), ("90s", 90), ("2D", 172_800), ("1w", 604_800),
        ("PT8H", 28_800), ("P1DT1H", 90_000), ("pt90s", 90), ("0", None), ("-1", None), ("1.5", None), ("P", None),
        ("PT", None), ("0h", None), ("h", None), ("8 hours", None), ("99999999999", None), ("", None), ("٣", None),
    ],
)  # fmt: skip
def test_times_to_live(text: str, seconds: int | None) -> None:
    """A time to live is a whole number of seconds above 0, a span in words, or an ISO 8601 duration."""
    assert ttl_seconds(text) == seconds


@pytest.mark.parametrize(
    ("status", "active"),
    [("Active", True), ("ENABLED", True), (" active ", False), ("Disabled", False), ("actives", False), ("", False)],
)
def test_active_statuses(status: str, active: bool) -> None:
    """The statuses Active and Enabled, in upper or lower case, grant access. Other statuses do not."""
    assert is_active(status) is active


@pytest.mark.parametrize(
    "check",
    [fields.user_name, fields.user_type, fields.ssh_keys, fields.seed, fields.did],
    ids=lambda check: check.__name__,
)
@settings(deadline=None)
@given(text=st.text(max_size=300))
def test_any_text_is_stored_or_refused(check: Callable[[object], str], text: str) -> None:
    """A text is either refused with the error of the field, or stored in a form that the field accepts unchanged."""
    once = stored(check, text)
    assert once is None or stored(check, once) == once
