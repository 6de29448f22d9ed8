"""SHA-512 crypt, tested with the vectors of its specification."""

import pytest

from sallyport.base.sha512crypt import matches, sha512_crypt

VECTORS = (  # "Unix crypt using SHA-256 and SHA-512", those with the default number of rounds
    (
        "Hello world!",
        "saltstring",
        "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
    ),
)


@pytest.mark.parametrize(("password", "salt", "hashed"), VECTORS)
def test_the_hash_matches_the_published_vectors(password: str, salt: str, hashed: str) -> None:
    assert sha512_crypt(password.encode(), salt) == hashed


def test_each_hash_has_its_own_salt() -> None:
    """The same password gives a different hash each time and matches each of these hashes."""
    first, second = (sha512_crypt(b"hunter2") for _ in range(2))
    assert first != second
    assert matches(b"hunter2", first)
    assert matches(b"hunter2", second)
    assert not matches(b"hunter3", first)
    assert not matches(b"hunter2", "$y$j9T$x$y")


@pytest.mark.parametrize(("password", "salt"), [(b"a\0b", "salt"), (b"a", ""), (b"a", "x" * 17), (b"a", "s:lt")])
def test_nul_and_invalid_salts_are_refused(password: bytes, salt: str) -> None:
    with pytest.raises(ValueError, match="must not contain NUL"):
        sha512_crypt(password, salt)
