"""The types of an endpoint user's fields: names, passwords, SSH keys, one-time-password seeds, DIDs.

Each validator returns the value in the form that is stored. The errors have pydantic's types, and never contain the
value.
"""

import binascii
import re
from base64 import b32decode
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretBytes

from sallyport.areas.users.accounts.account import LISTED_LOCAL, LOCAL
from sallyport.areas.users.user import MAX_NAME, MAX_PASSWORD, USER_NAME, is_user_name
from sallyport.base.validation import unfit
from sallyport.web.bodies import Octets

MAX_TEXT = 255
MAX_KEYS = 65_536
MAX_KEY_COUNT = 256
_KEY_TYPES = {
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
}
_MIN_RSA_LENGTH = 1024  # sshd_config(5), RequiredRSASize: OpenSSH refuses shorter keys
_MAX_RSA_LENGTH = 4096
_MAX_EXPONENT_SIZE = 1 << 32
_SEED = re.compile(r"[A-Z2-7]{16,128}", re.ASCII)  # some apps generate 80 bits, although RFC 4226 requires 128
MAX_SEED = 1024
"""Maximum length of a seed in characters, including spaces and hyphens. Without this limit, removing spaces and hyphens
from a million characters would take 0.1 s."""
# DID Core, section 3.1: the method's name, then the identifier, whose parts are separated by colons.
_ID_CHARACTER = r"(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})"
_DID = re.compile(rf"did:[a-z0-9]+:(?:{_ID_CHARACTER}*:)*{_ID_CHARACTER}+", re.ASCII)


def user_name(value: object) -> str:
    """Check that a value is a user name that `is_user_name` accepts, and return the name."""
    text = _text(value)
    if not is_user_name(text):
        raise unfit(USER_NAME)
    return text


def password(value: SecretBytes) -> SecretBytes:
    """Check and return a password. A password has at most 128 octets (the limit of RADIUS), and no NUL. An empty value
    means no password."""
    octets = value.get_secret_value()
    if len(octets) > MAX_PASSWORD or b"\0" in octets:
        raise unfit(f"must have at most {MAX_PASSWORD} octets and no NUL")
    return value


def user_type(value: object) -> str:
    """Return a user type as it is stored. `Local User` becomes `Local`, because lists show `Local` as `Local User`."""
    text = _plain(value)
    return LOCAL if text.lower() in {LOCAL.lower(), LISTED_LOCAL.lower()} else text


def ssh_keys(value: object) -> str:
    """Return OpenSSH public keys without options, one in each line (RFC 4253 section 6.6, sshd(8)). An empty value
    means no keys."""
    lines = [line.strip() for line in _text(value).splitlines()]
    if sum(map(len, lines)) > MAX_KEYS or sum(map(bool, lines)) > MAX_KEY_COUNT:
        raise unfit(f"must have at most {MAX_KEY_COUNT} keys and {MAX_KEYS} characters")
    for number, line in enumerate(lines, 1):
        if line and not _is_key(line):
            raise unfit(
                f"must be OpenSSH public keys, one in each line, with RSA keys of {_MIN_RSA_LENGTH} to "
                f"{_MAX_RSA_LENGTH} bits; line {number} is not such a key"
            )
    return "\n".join(line for line in lines if line)


def _is_key(line: str) -> bool:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    if line.split(" ", 1)[0] not in _KEY_TYPES or not line.isprintable():
        return False
    try:
        key = load_ssh_public_key(line.encode())
    except (ValueError, UnsupportedAlgorithm):
        return False
    if not isinstance(key, RSAPublicKey):
        return True
    return _MIN_RSA_LENGTH <= key.key_size <= _MAX_RSA_LENGTH and key.public_numbers().e < _MAX_EXPONENT_SIZE


def seed(value: object) -> str:
    """Return a TOTP seed in base32 (RFC 4648 section 6) without separators. The seed has 80 to 640 bits. An empty value
    means no seed."""
    text, wanted = _text(value), "must be a seed in base32 of 16 to 128 characters"
    if len(text) > MAX_SEED:
        raise unfit(wanted)
    text = re.sub(r"[\s-]", "", text).rstrip("=").upper()
    if not text:
        return ""
    try:
        if not _SEED.fullmatch(text):
            raise unfit(wanted)
        b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error:
        raise unfit(wanted) from None
    return text


def did(value: object) -> str:
    """Return a DID (DID Core section 3.1). An empty value means no DID."""
    text = _plain(value)
    if text and not _DID.fullmatch(text):
        raise unfit("must be a DID of the form did:method:identifier")
    return text


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise unfit("must be text")
    return str(value)


def _plain(value: object) -> str:
    text = _text(value).strip()
    if len(text) > MAX_TEXT or not text.isprintable():
        raise unfit(f"must have at most {MAX_TEXT} characters, and only printable ones")
    return text


UserName = Annotated[
    str,
    Field(
        min_length=1, max_length=MAX_NAME, description="Login name of the user, printable, unique within the domain."
    ),
    BeforeValidator(user_name),
]
Password = Annotated[
    Octets,
    AfterValidator(password),
    Field(
        description=f"Password of at most {MAX_PASSWORD} octets without NUL. An empty password keeps the old password."
    ),
]
UserType = Annotated[
    str, Field(max_length=MAX_TEXT, description="Type of the user, such as Local."), BeforeValidator(user_type)
]
CredentialType = Annotated[
    str, Field(max_length=MAX_TEXT, description="Type of the credential, such as Password."), BeforeValidator(_plain)
]
SshKeys = Annotated[
    str,
    Field(description="OpenSSH public keys without options, one in each line; at most 256."),
    BeforeValidator(ssh_keys),
]
Seed = Annotated[
    str,
    Field(
        max_length=MAX_SEED,
        description="One-time-password seed in base32, 80 to 640 bits. An empty value removes the seed.",
    ),
    BeforeValidator(seed),
]
Did = Annotated[
    str,
    Field(max_length=MAX_TEXT, description="DID of the user, such as did:key:z6Mk.... An empty value removes the DID."),
    BeforeValidator(did),
]
