"""Hashes of the passwords of administrators."""

import pytest
from pyotp import TOTP

from sallyport.areas.signin import repo
from sallyport.areas.signin.sessions import Browser
from sallyport.areas.tenancy.passwords import checked, hashed
from sallyport.base.clock import SECOND
from sallyport.base.errors import Unauthenticated
from sallyport.base.sha512crypt import sha512_crypt
from sallyport.store.model import Tx
from sallyport.web.scope import Role
from tests.areas import Areas

PASSWORD = "a horse and 42 batteries"
OCTETS = PASSWORD.encode()


def test_a_hash_belongs_to_its_password() -> None:
    """A hash has the parameters and a salt of its own."""
    first, second = hashed(OCTETS), hashed(OCTETS)
    assert first != second
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert [checked(each, first) for each in (OCTETS, b"another", b"")] == [(True, ""), (False, ""), (False, "")]


def test_a_former_hash_is_replaced() -> None:
    """The check of a former hash yields a new one, whether or not the password is right."""
    former = sha512_crypt(OCTETS)
    is_right, new = checked(OCTETS, former)
    assert is_right and checked(OCTETS, new) == (True, "")
    assert checked(b"another", former)[0] is False


@pytest.mark.parametrize("known", ["", "$6$", "$5$salt$hash", "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$"])
def test_a_hash_that_cannot_be_read_fits_no_password(known: str) -> None:
    """Without an administrator, and with a damaged hash, no password is right."""
    assert checked(OCTETS, known)[0] is False


async def test_a_sign_in_replaces_a_former_hash(areas: Areas) -> None:
    """A failed sign-in keeps the former hash. One that succeeds stores a new hash of the same password."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)

    def to_former(tx: Tx) -> None:
        repo.set_password(tx, areas.vault, 1, sha512_crypt(OCTETS))

    async def stored() -> str:
        held = await areas.store.read(lambda tx: repo.secrets(tx, 1))
        assert held is not None
        return held.open_password(areas.vault)

    await areas.store.write(to_former)
    browser, sign_ins = Browser("192.0.2.1"), areas.sign_ins
    with pytest.raises(Unauthenticated):
        await sign_ins.by_password("root", "wrong", TOTP(seed).at(areas.clock() // SECOND), browser)
    assert (await stored()).startswith("$6$")
    await sign_ins.by_password("root", PASSWORD, TOTP(seed).at(areas.clock() // SECOND), browser)
    assert (await stored()).startswith("$argon2id$")
    areas.clock.pass_by(60)
    await sign_ins.by_password("root", PASSWORD, TOTP(seed).at(areas.clock() // SECOND), browser)
