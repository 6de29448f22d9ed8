"""The accepted values of the fields of agent messages."""

import pytest

from sallyport.agentwire.report import MAX_REPORT, Phase, Rotation, rotation
from sallyport.agentwire.state import DesiredUser, Rules, State
from sallyport.base.errors import WireError
from sallyport.base.wire import decode, dumps

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g ann@host"
SHA512 = "$6$saltsaltsalt$" + "a" * 86


@pytest.mark.parametrize(
    "name", ["", "../x", "0", "1000", "é", "A_b", "a$", "a:b", "a\n", "root x", "-x", "a" * 33, "ann\u202e"]
)
def test_unsafe_user_names_are_refused(name: str) -> None:
    """A user name is refused if useradd would refuse it or if it would change another line of the password file."""
    with pytest.raises(WireError, match="name: "):
        decode(DesiredUser, {"name": name})


@pytest.mark.parametrize("home", ["home", "/", "/home/../etc", "/home/.", "/home/a b", "/home/a:b", "/a\n/b", "//a"])
def test_invalid_homes_are_refused(home: str) -> None:
    """A home is an absolute path without `..`."""
    with pytest.raises(WireError, match="home: must be an absolute path"):
        decode(DesiredUser, {"name": "ann", "home": home})


@pytest.mark.parametrize("key", ["", "x", 'command="sh" ' + KEY, KEY + "\n" + KEY, "ssh-dss " + KEY[12:]])
def test_invalid_keys_are_refused(key: str) -> None:
    """An SSH key is one line without options, of a type that sshd accepts."""
    with pytest.raises(WireError, match=r"sshKeys\[0\]: "):
        decode(DesiredUser, {"name": "ann", "sshKeys": [key]})


@pytest.mark.parametrize("text", ["x", "!", "$1$aaaaaaaa$bbbbbbbbbbbb", SHA512 + ":x", SHA512 + "\n", "$6$short"])
def test_invalid_password_hashes_are_refused(text: str) -> None:
    """A hash uses a safe method of crypt(5) and contains no character that ends a field."""
    with pytest.raises(WireError, match="passwordHash: "):
        decode(DesiredUser, {"name": "ann", "passwordHash": text})


def test_a_user_with_every_field_is_accepted() -> None:
    """The repr of a user does not contain the hash."""
    user = decode(
        DesiredUser,
        {"name": "ann", "uid": 2000, "groups": ["dev"], "home": "/srv/ann", "sshKeys": [KEY], "passwordHash": SHA512},
    )
    assert (user.uid, user.home, user.ssh_keys, user.password_hash) == (2000, "/srv/ann", (KEY,), SHA512)
    assert SHA512 not in repr(user)


def test_policies_have_limits_and_other_formats_are_refused() -> None:
    assert decode(Rules, {"minLength": 12, "quality": {"credits": [-2, 0, 0, 0]}}).min_length == 12
    with pytest.raises(WireError, match="four numbers"):
        decode(Rules, {"quality": {"credits": [-2, 0, 0]}})
    with pytest.raises(WireError, match="format"):
        decode(State, {"instance": 1, "version": 1, "issued": 1, "format": 2})


def test_only_an_escrow_has_a_password() -> None:
    """Only an escrow has a password and a hash, and no repr contains them."""
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
