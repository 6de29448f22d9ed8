"""Sealing of secrets, and the source of the master key."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import ConfigError, SecretError
from sallyport.base.secret import Secret
from sallyport.settings.master_key import KEY_FILE
from sallyport.settings.values import CREDENTIALS, MASTER_KEY, MASTER_KEY_FILE
from sallyport.store.vault import MasterKeys, Vault, load_master_keys, write_keys

ROW = "radius_clients/7/secret"
KEY = bytes(range(32))


@given(clear=st.binary(max_size=300), identity=st.text(max_size=40))
def test_a_sealed_value_opens_for_its_row(clear: bytes, identity: str) -> None:
    """A sealed value opens for its row, and does not contain the secret."""
    vault = Vault(Secret(KEY))
    sealed = vault.seal(clear, identity)
    assert vault.open(sealed, identity) == clear
    assert len(clear) < 4 or clear not in sealed


def test_each_sealing_is_another() -> None:
    """The same secret is sealed to different octets each time, so that equal secrets cannot be recognised."""
    vault = Vault(Secret(KEY))
    assert len({vault.seal(b"secret", ROW) for _ in range(100)}) == 100


def test_another_row_does_not_open_it() -> None:
    """A value of another row or column raises SecretError with the row's name alone."""
    sealed = Vault(Secret(KEY)).seal(b"hunter2", ROW)
    for other in ("radius_clients/8/secret", "endpoint_users/7/password", "", ROW + " "):
        with pytest.raises(SecretError) as raised:
            Vault(Secret(KEY)).open(sealed, other)
        assert "hunter2" not in str(raised.value)


def test_another_key_does_not_open_it() -> None:
    """A key with one bit changed does not open the value."""
    sealed = Vault(Secret(KEY)).seal(b"secret", ROW)
    with pytest.raises(SecretError, match=f"{ROW} cannot be decrypted with this master key"):
        Vault(Secret(bytes((KEY[0] ^ 1,)) + KEY[1:])).open(sealed, ROW)


def test_an_altered_value_does_not_open() -> None:
    """A value with any octet changed or missing, of version, nonce, ciphertext and tag, does not open."""
    vault = Vault(Secret(KEY))
    sealed = vault.seal(b"secret", ROW)
    for at in range(len(sealed)):
        with pytest.raises(SecretError):
            vault.open(sealed[:at] + bytes((sealed[at] ^ 0x80,)) + sealed[at + 1 :], ROW)
        with pytest.raises(SecretError):
            vault.open(sealed[:at], ROW)


def test_a_missing_key_version_is_named() -> None:
    """The error for a later key's value names the missing version, and does not report an altered value."""
    vault = Vault(Secret(KEY))
    with pytest.raises(SecretError, match="needs version"):
        vault.open(b"\2" + vault.seal(b"secret", ROW)[1:], ROW)


def test_the_key_of_the_environment_comes_first(tmp_path: Path) -> None:
    """The environment's key, 64 hex digits in any case with spaces around them, comes first, and no file is made."""
    key = load_master_keys(tmp_path, {"SALLYPORT_MASTER_KEY": f" {KEY.hex().upper()}\n"}, may_make=True)
    assert key == MasterKeys({1: Secret(KEY)})
    assert list(tmp_path.iterdir()) == []


def test_a_file_or_a_credential_precedes_the_data_directory(tmp_path: Path) -> None:
    """A file that the environment names, or else systemd's credential, has the keys. An empty credential is none."""
    own = load_master_keys(tmp_path, {}, may_make=True)
    (tmp_path / "apart").mkdir()
    file = tmp_path / "apart" / KEY_FILE
    for environ in ({MASTER_KEY_FILE: str(file)}, {CREDENTIALS: str(file.parent)}):
        file.write_text(f"{KEY.hex()}\n")
        found = load_master_keys(tmp_path, environ, may_make=False)
        assert (found.keys, found.file, found.source) == ({1: Secret(KEY)}, None, str(file))
    file.write_text("\n")
    assert load_master_keys(tmp_path, {CREDENTIALS: str(file.parent)}, may_make=False) == own
    file.unlink()
    assert load_master_keys(tmp_path, {CREDENTIALS: str(file.parent)}, may_make=False) == own
    with pytest.raises(ConfigError, match=f"the key file {file} is missing"):
        load_master_keys(tmp_path, {MASTER_KEY_FILE: str(file)}, may_make=True)


def test_two_sources_of_the_key_are_refused(tmp_path: Path) -> None:
    """Nothing says which of two variables is right."""
    with pytest.raises(ConfigError, match="SALLYPORT_MASTER_KEY and SALLYPORT_MASTER_KEY_FILE are both set"):
        load_master_keys(tmp_path, {MASTER_KEY: KEY.hex(), MASTER_KEY_FILE: "x"}, may_make=False)


def test_a_key_file_is_made_once(tmp_path: Path) -> None:
    """The first start makes a random master.key with mode 0600, and later starts read it."""
    first, again = load_master_keys(tmp_path, {}, may_make=True), load_master_keys(tmp_path, {}, may_make=True)
    assert first == again
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    assert load_master_keys(tmp_path / "other", {}, may_make=True) != first


def test_a_lost_key_file_is_not_replaced(tmp_path: Path) -> None:
    """If a store has sealed values, a missing key is an error, and no new key is made."""
    with pytest.raises(ConfigError, match=r"master\.key is missing.*put it back"):
        load_master_keys(tmp_path, {}, may_make=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, "0x" + "00" * 32])
def test_a_malformed_key_is_refused(tmp_path: Path, text: str) -> None:
    """The error for a malformed key of the environment or the file describes a key, and does not repeat the value."""
    (tmp_path / KEY_FILE).write_text(text)
    for environ in ({}, {"SALLYPORT_MASTER_KEY": text}):
        with pytest.raises(ConfigError, match="the master key must have 64 hex digits") as raised:
            load_master_keys(tmp_path, environ, may_make=True)
        assert not text or text not in str(raised.value)


@pytest.mark.parametrize("octets", [b"\xff" * 64, None])
def test_an_unreadable_key_file_is_named(tmp_path: Path, octets: bytes | None) -> None:
    """A key file with octets that are no text, or a directory in its place, raises ConfigError with the name."""
    if octets is None:
        (tmp_path / KEY_FILE).mkdir()
    else:
        (tmp_path / KEY_FILE).write_bytes(octets)
    with pytest.raises(ConfigError, match=KEY_FILE):
        load_master_keys(tmp_path, {}, may_make=True)


def test_a_key_is_not_shown() -> None:
    """The repr of a key is ***, in a vault too."""
    assert repr(Secret(KEY)) == "***"
    assert KEY.hex() not in repr(vars(Vault(Secret(KEY))))


def test_several_keys() -> None:
    """The highest version seals, and all versions open. A retired key opens values until the process ends, and is no
    longer listed.
    """
    old, new = Secret(KEY), Secret(bytes(32))
    both = Vault(MasterKeys({1: old, 2: new}))
    before, after = Vault(old).seal(b"before", ROW), both.seal(b"after", ROW)
    assert (both.is_current(before), both.is_current(after)) == (False, True)
    assert (both.open(before, ROW), both.open(after, ROW)) == (b"before", b"after")
    with pytest.raises(SecretError):
        Vault(old).open(after, ROW)
    both.retire()
    assert both.versions == (2,)
    assert both.open(before, ROW) == b"before"


def test_the_keys_of_the_next_start(tmp_path: Path) -> None:
    """They are those in the key file now. The environment of a process does not change."""
    held = load_master_keys(tmp_path, {}, may_make=True)
    write_keys(tmp_path / KEY_FILE, {**held.keys, 7: Secret(KEY)})
    assert Vault(held).at_next_start().versions == (1, 7)
    assert Vault(Secret(KEY)).at_next_start().versions == (1,)


def test_keys_that_are_written_are_read(tmp_path: Path) -> None:
    """Written keys are read again, with mode 0600. The environment may contain several too."""
    keys = {1: Secret(KEY), 7: Secret(bytes(32))}
    write_keys(tmp_path / KEY_FILE, keys)
    assert load_master_keys(tmp_path, {}, may_make=False) == MasterKeys(keys, tmp_path / KEY_FILE)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    text = f"7:{'00' * 32},1:{KEY.hex()}"
    assert load_master_keys(tmp_path, {"SALLYPORT_MASTER_KEY": text}, may_make=False) == MasterKeys(keys)


@pytest.mark.parametrize("text", ["0:" + "00" * 32, "256:" + "00" * 32, "1:1:" + "00" * 32, f"{'00' * 32},{'11' * 32}"])
def test_invalid_versions(tmp_path: Path, text: str) -> None:
    """A version is 1 to 255, and each occurs once."""
    with pytest.raises(ConfigError, match="the master key must have 64 hex digits"):
        load_master_keys(tmp_path, {"SALLYPORT_MASTER_KEY": text}, may_make=False)
