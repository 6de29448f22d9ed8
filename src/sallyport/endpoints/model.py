"""What an endpoint user is."""

from dataclasses import dataclass

MAX_NAME = 253
MAX_PASSWORD = 128


class User:
    """A user as the login path sees it.

    passwords: the octets that are right: as given, and in Latin-1 for devices that send that; empty where the user
    has no password.
    """

    __slots__ = ("id", "name", "passwords")

    def __init__(self, user_id: int, name: str, password: bytes | None) -> None:
        self.id = user_id
        self.name = name
        self.passwords = () if password is None else _spellings(password)


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user in a list, without secrets. Times in microseconds."""

    id: int
    domain_id: int
    name: str
    user_type: str
    credential_type: str
    created_at: int
    updated_at: int


def name_key(name: str) -> str:
    """Names are compared without case."""
    return name.casefold()


def _spellings(password: bytes) -> tuple[bytes, ...]:
    if password.isascii():
        return (password,)
    try:
        return password, password.decode().encode("latin-1")
    except UnicodeError:
        return (password,)
