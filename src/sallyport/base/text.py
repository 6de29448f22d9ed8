"""Text as it is compared: without case, and however its letters are written.

Unicode has two ways to write an `é`: as one character, and as an `e` with an accent behind it. It depends on keyboard
and system which one a person types, and both are the same name (RFC 8265 section 3.3: normalization form C).
"""

from unicodedata import normalize


def composed(text: str) -> str:
    """Text in normalization form C: a letter and its accents are one character, where there is one."""
    return text if text.isascii() else normalize("NFC", text)


def fold(text: str) -> str:
    """Text in the form that is compared."""
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


def fold_name(name: str) -> str:
    """A user's name in the form that is compared where others check the password: to many of them spaces around it are
    nothing, and ` ann` would be ann without her rules, her failures and her prompts."""
    return fold(name.strip())
