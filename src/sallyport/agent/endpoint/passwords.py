"""Random passwords that meet the password policies of the machine, and their hashes. The operating system is the source
of randomness.

Each character is drawn from the character classes that the policies allow. If the resulting password does not meet a
policy, another password is drawn. So all passwords that meet the policies are about equally likely. The hash method is
yescrypt if it is set in login.defs(5) and the host's libcrypt supports it, else SHA-512.
"""

import ctypes
import hmac
import secrets
import string
from collections.abc import Sequence
from typing import Final

from sallyport.agentwire.state import First, Rules
from sallyport.areas.passwords.engine import failures
from sallyport.base.errors import HostError
from sallyport.base.sha512crypt import sha512_crypt

LENGTH: Final = 24
"""Default length of a password in characters. A policy may require another length. A password of this length, made of
digits and letters of both cases, has 140 random bits."""
_MAX_LENGTH: Final = 128  # maximum length of a User-Password in RADIUS, in octets (RFC 2865 section 5.2)
# Quotes, backslash and colon are excluded, because configuration files give them a special meaning.
_SPECIAL: Final = "!#$%&()*+,-./;<=>?@[]^_{|}~"
_TRIES: Final = 300
_LIBRARIES: Final = ("libcrypt.so.1", "libcrypt.so.2")


def generate(policies: Sequence[Rules], user: str) -> str:
    """Return a password that meets all policies. Raises HostError if no such password was found. In this case, the
    policies probably contradict each other."""
    length = _length(policies)
    for classes in _choices(policies):
        for _ in range(_TRIES):
            password = _draw(policies, classes, length)
            if not any(failures(each, password, user) for each in policies):
                return password
    raise HostError("no password meets all policies of the machine")


def _length(policies: Sequence[Rules]) -> int:
    shortest = [policy.min_length or 0 for policy in policies]
    shortest += [policy.quality.minlen or 0 for policy in policies if policy.quality]
    longest = [policy.max_length for policy in policies if policy.max_length is not None]
    return min([max([LENGTH, *shortest]), _MAX_LENGTH, *longest])


def _choices(policies: Sequence[Rules]) -> list[list[str]]:
    """Return lists of character classes. A password is drawn from the classes of one list, and the lists are tried in
    this order.

    The first lists contain letters and digits. The later lists also contain special characters. A class that a policy
    forbids is in no list. If a policy forbids a mix of uppercase and lowercase letters, each list contains either
    uppercase or lowercase letters.
    """
    digits = [string.digits] if all(policy.digits for policy in policies) else []
    # Special characters are tried last: some forms and shells do not accept them.
    special = [_SPECIAL] if all(policy.special for policy in policies) else []
    upper, lower = string.ascii_uppercase, string.ascii_lowercase
    letters = [[lower, upper]] if all(policy.both_cases for policy in policies) else [[lower], [upper]]
    return [each + digits for each in letters] + [each + digits + special for each in letters if special]


def _draw(policies: Sequence[Rules], classes: Sequence[str], length: int) -> str:
    """Return a random password of `length` characters. If there are several classes, the policies limit how many
    consecutive characters may be of one class."""
    longest_run = min((q.maxclassrepeat for p in policies if (q := p.quality) and q.maxclassrepeat > 1), default=length)
    password = ""
    run = 0
    last = ""
    while len(password) < length:
        allowed = [each for each in classes if each != last or run < longest_run] or list(classes)
        if not password:
            allowed = _first(policies, allowed)
        # Draw from all characters, so that each is equally likely. To draw a class first would favour the ten digits.
        character = secrets.choice("".join(allowed))
        kind = next(each for each in classes if character in each)
        run = run + 1 if kind == last else 1
        last = kind
        password += character
    return password


def _first(policies: Sequence[Rules], classes: list[str]) -> list[str]:
    kinds = {
        First.UPPERCASE: string.ascii_uppercase,
        First.LOWERCASE: string.ascii_lowercase,
        First.DIGIT: string.digits,
    }
    wanted = [kinds[policy.first] for policy in policies if policy.first]
    return [each for each in classes if all(each == kind for kind in wanted)] or classes


def hash_password(password: str, method: str) -> str:
    """Return the hash of a password with a new salt. method: the value of ENCRYPT_METHOD in login.defs(5)."""
    library = _libcrypt() if method == "YESCRYPT" else None
    if library is not None:
        salt = library.crypt_gensalt(b"$y$", 0, None, 0)
        hashed = library.crypt(password.encode(), salt) if salt else None
        if hashed and hashed.startswith(b"$y$"):
            return str(hashed.decode("ascii"))
    return sha512_crypt(password.encode())


def matches(password: str, hashed: str) -> bool:
    """Return whether `hashed`, a result of `hash_password`, is the hash of this password."""
    if hashed.startswith("$6$"):
        return hmac.compare_digest(sha512_crypt(password.encode(), hashed.split("$")[2]), hashed)
    library = _libcrypt()
    again = library.crypt(password.encode(), hashed.encode()) if library is not None else None
    return again is not None and hmac.compare_digest(again, hashed.encode())


def _libcrypt() -> ctypes.CDLL | None:
    """Return libxcrypt with the functions crypt(3) and crypt_gensalt(3), or None if the host does not have them."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            library.crypt_gensalt.restype = ctypes.c_char_p
            library.crypt_gensalt.argtypes = (ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int)
            library.crypt.restype = ctypes.c_char_p
            library.crypt.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
        except (OSError, AttributeError):
            continue
        return library
    return None
