"""Hashes of passwords, as the host makes them: yescrypt where login.defs(5) says so, else SHA-512."""

import ctypes
import hmac
from typing import Final

from sallyport.base.sha512crypt import sha512_crypt

_LIBRARIES: Final = ("libcrypt.so.1", "libcrypt.so.2")


def hash_password(password: str, method: str) -> str:
    """The hash of a password, with a salt of its own. method: ENCRYPT_METHOD of login.defs(5)."""
    library = _libcrypt() if method == "YESCRYPT" else None
    if library is not None:
        salt = library.crypt_gensalt(b"$y$", 0, None, 0)
        hashed = library.crypt(password.encode(), salt) if salt else None
        if hashed and hashed.startswith(b"$y$"):
            return str(hashed.decode("ascii"))
    return sha512_crypt(password.encode())


def matches(password: str, hashed: str) -> bool:
    """Whether a hash that `hash_password` made is this password's."""
    if hashed.startswith("$6$"):
        return hmac.compare_digest(sha512_crypt(password.encode(), hashed.split("$")[2]), hashed)
    library = _libcrypt()
    again = library.crypt(password.encode(), hashed.encode()) if library is not None else None
    return again is not None and hmac.compare_digest(again, hashed.encode())


def _libcrypt() -> ctypes.CDLL | None:
    """libxcrypt (crypt(3), crypt_gensalt(3)); None where there is none, or one without crypt_gensalt."""
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
