"""Sealing of secrets, and where the master key comes from."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import ConfigError, SecretError
from sallyport.base.secret import Secret
from sallyport.store.vault import FILE, MasterKeys, Vault, load_master_keys, write_keys

ROW = "radius_clients/7/secret"
KEY = bytes(range(32))


@given(clear=st.binary(max_size=300), identity=st.text(max_size=40))
def test_what_is_sealed_opens_for_its_row(clear: bytes, identity: str) -> None:
    """Any octets under any identity come back, and are not to be seen in what is kept."""
    vault = Vault(Secret(KEY))
    sealed = vault.seal(clear, identity)
    assert vault.open(sealed, identity) == clear
    assert len(clear) < 4 or clear not in sealed


def test_each_sealing_is_another() -> None:
    """The same secret twice is not the same octets: a reader cannot tell which rows share one."""
    vault = Vault(Secret(KEY))
    assert len({vault.seal(b"secret", ROW) for _ in range(100)}) == 100


def test_another_row_does_not_open_it() -> None:
    """A value that was moved to another row, or to another column, is a SecretError that names the row alone."""
    sealed = Vault(Secret(KEY)).seal(b"hunter2", ROW)
    for other in ("radius_clients/8/secret", "endpoint_users/7/password", "", ROW + " "):
        with pytest.raises(SecretError) as raised:
            Vault(Secret(KEY)).open(sealed, other)
        assert "hunter2" not in str(raised.value)


def test_another_key_does_not_open_it() -> None:
    """A single other bit of the key is another key."""
    sealed = Vault(Secret(KEY)).seal(b"secret", ROW)
    with pytest.raises(SecretError, match=f"{ROW} does not open under this master key"):
        Vault(Secret(bytes((KEY[0] ^ 1,)) + KEY[1:])).open(sealed, ROW)


def test_an_altered_value_does_not_open() -> None:
    """Each octet of a sealed value counts: version, nonce, ciphertext and tag; so does every missing one."""
    vault = Vault(Secret(KEY))
    sealed = vault.seal(b"secret", ROW)
    for at in range(len(sealed)):
        with pytest.raises(SecretError):
            vault.open(sealed[:at] + bytes((sealed[at] ^ 0x80,)) + sealed[at + 1 :], ROW)
        with pytest.raises(SecretError):
            vault.open(sealed[:at], ROW)


def test_a_key_version_that_is_not_here_is_told() -> None:
    """A value of a later key says so, instead of seeming altered."""
    vault = Vault(Secret(KEY))
    with pytest.raises(SecretError, match="key version that is not here"):
        vault.open(b"\2" + vault.seal(b"secret", ROW)[1:], ROW)


def test_the_key_of_the_environment_comes_first(tmp_path: Path) -> None:
    """64 hex digits in any case, spaces at the ends ignored; no file is made."""
    key = load_master_keys(tmp_path, {"SALLYPORT_MASTER_KEY": f" {KEY.hex().upper()}\n"}, may_make=True)
    assert key == MasterKeys({1: Secret(KEY)})
    assert list(tmp_path.iterdir()) == []


def test_a_key_file_is_made_once(tmp_path: Path) -> None:
    """The first start makes master.key with mode 0600, random and read again by every later one."""
    first, again = load_master_keys(tmp_path, {}, may_make=True), load_master_keys(tmp_path, {}, may_make=True)
    assert first == again
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    assert load_master_keys(tmp_path / "other", {}, may_make=True) != first


def test_a_lost_key_file_is_not_made_anew(tmp_path: Path) -> None:
    """Where there is a store that a key has sealed, a missing key is an error and no other one takes its place."""
    with pytest.raises(ConfigError, match=r"master\.key is missing"):
        load_master_keys(tmp_path, {}, may_make=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, "0x" + "00" * 32])
def test_a_malformed_key_is_refused(tmp_path: Path, text: str) -> None:
    """Of the environment or of the file: what a key is is told, and what was given is not."""
    (tmp_path / FILE).write_text(text)
    for environ in ({}, {"SALLYPORT_MASTER_KEY": text}):
        with pytest.raises(ConfigError, match="the master key is 64 hex digits") as raised:
            load_master_keys(tmp_path, environ, may_make=True)
        assert not text or text not in str(raised.value)


@pytest.mark.parametrize("octets", [b"\xff" * 64, None])
def test_a_key_file_that_cannot_be_read_is_told(tmp_path: Path, octets: bytes | None) -> None:
    """Octets that are no text, or a folder in its place, are a ConfigError that names the file."""
    if octets is None:
        (tmp_path / FILE).mkdir()
    else:
        (tmp_path / FILE).write_bytes(octets)
    with pytest.raises(ConfigError, match=FILE):
        load_master_keys(tmp_path, {}, may_make=True)


def test_a_key_is_not_shown() -> None:
    """Its repr is ***, in a vault's as well."""
    assert repr(Secret(KEY)) == "***"
    assert KEY.hex() not in repr(vars(Vault(Secret(KEY))))


def test_several_keys() -> None:
    """The highest version seals, all of them open; a retired one opens until the process ends, and is not at hand."""
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


def test_keys_that_are_written_are_read(tmp_path: Path) -> None:
    """As many as there are, with mode 0600; the environment may hold several too."""
    keys = {1: Secret(KEY), 7: Secret(bytes(32))}
    write_keys(tmp_path / FILE, keys)
    assert load_master_keys(tmp_path, {}, may_make=False) == MasterKeys(keys, tmp_path / FILE)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    text = f"7:{'00' * 32},1:{KEY.hex()}"
    assert load_master_keys(tmp_path, {"SALLYPORT_MASTER_KEY": text}, may_make=False) == MasterKeys(keys)


@pytest.mark.parametrize("text", ["0:" + "00" * 32, "256:" + "00" * 32, "1:1:" + "00" * 32, f"{'00' * 32},{'11' * 32}"])
def test_versions_that_are_none(tmp_path: Path, text: str) -> None:
    """A version is 1 to 255, each once."""
    with pytest.raises(ConfigError, match="the master key is 64 hex digits"):
        load_master_keys(tmp_path, {"SALLYPORT_MASTER_KEY": text}, may_make=False)


def test_a_missing_key_of_a_store_is_not_replaced(tmp_path: Path) -> None:
    """Where a store was sealed, a new key would only hide that the old one is lost."""
    with pytest.raises(ConfigError, match="put it back"):
        load_master_keys(tmp_path, {}, may_make=False)
    assert not (tmp_path / "master.key").exists()
