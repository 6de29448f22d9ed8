"""Accepted values of the fields of the agents' messages."""

import pytest

from sallyport.base.agentwire.report import MAX_REPORT, Phase, Rotation, rotation
from sallyport.base.agentwire.state import DesiredUser, Rules, State
from sallyport.base.errors import WireError
from sallyport.base.wire import decode, dumps

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g ann@host"
SHA512 = "$6$saltsaltsalt$" + "a" * 86


@pytest.mark.parametrize(
    "name", ["", "../x", "0", "1000", "é", "A_b", "a$", "a:b", "a\n", "root x", "-x", "a" * 33, "ann\u202e"]
)
def test_names_that_a_host_should_not_get(name: str) -> None:
    """A name that useradd refuses, or that would change another line, is refused."""
    with pytest.raises(WireError, match="name: "):
        decode(DesiredUser, {"name": name})


@pytest.mark.parametrize("home", ["home", "/", "/home/../etc", "/home/.", "/home/a b", "/home/a:b", "/a\n/b", "//a"])
def test_invalid_homes(home: str) -> None:
    """A home is an absolute path without `..`."""
    with pytest.raises(WireError, match="home: not an absolute path"):
        decode(DesiredUser, {"name": "ann", "home": home})


@pytest.mark.parametrize("key", ["", "x", 'command="sh" ' + KEY, KEY + "\n" + KEY, "ssh-dss " + KEY[12:]])
def test_invalid_keys(key: str) -> None:
    """A key is one line without options, of a kind that sshd accepts."""
    with pytest.raises(WireError, match=r"sshKeys\[0\]: "):
        decode(DesiredUser, {"name": "ann", "sshKeys": [key]})


@pytest.mark.parametrize("text", ["x", "!", "$1$aaaaaaaa$bbbbbbbbbbbb", SHA512 + ":x", SHA512 + "\n", "$6$short"])
def test_hashes(text: str) -> None:
    """A password hash has a safe method of crypt(5) and no character that ends a line."""
    with pytest.raises(WireError, match="passwordHash: "):
        decode(DesiredUser, {"name": "ann", "passwordHash": text})


def test_a_whole_user() -> None:
    """A user with every field is accepted."""
    user = decode(
        DesiredUser,
        {"name": "ann", "uid": 2000, "groups": ["dev"], "home": "/srv/ann", "sshKeys": [KEY], "passwordHash": SHA512},
    )
    assert (user.uid, user.home, user.ssh_keys, user.password_hash) == (2000, "/srv/ann", (KEY,), SHA512)
    assert SHA512 not in repr(user)


def test_policies_and_another_format() -> None:
    """A policy has limits, and a state of another format is refused."""
    assert decode(Rules, {"minLength": 12, "quality": {"credits": [-2, 0, 0, 0]}}).min_length == 12
    with pytest.raises(WireError, match="four numbers"):
        decode(Rules, {"quality": {"credits": [-2, 0, 0]}})
    with pytest.raises(WireError, match="format"):
        decode(State, {"instance": 1, "version": 1, "issued": 1, "format": 2})


def test_an_escrow_has_a_password() -> None:
    """Only an escrow has a password and a hash, and no repr shows them."""
    escrow = Rotation("rotation1", "ann", Phase.ESCROW, password="s3cret pass", password_hash=SHA512)
    assert rotation(dumps(escrow)) == escrow
    assert "s3cret" not in repr(escrow)
    for wrong in (
        Rotation("rotation1", "ann", Phase.ESCROW),
        Rotation("rotation1", "ann", Phase.CONFIRM, password="x"),
    ):
        with pytest.raises(WireError, match="password: "):
            rotation(dumps(wrong))
    with pytest.raises(WireError, match="longer"):
        rotation(b" " * (MAX_REPORT + 1))
