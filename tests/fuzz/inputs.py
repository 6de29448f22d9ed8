"""Parts and texts that are made of the octets of an input."""


def pieces(octets: bytes, most: int = 12) -> list[bytes]:
    """Split an input into parts: each begins with its size in one octet."""
    found: list[bytes] = []
    at = 0
    while at < len(octets) and len(found) < most:
        size = octets[at]
        found.append(octets[at + 1 : at + 1 + size])
        at += 1 + size
    return found


def joined(parts: list[bytes]) -> bytes:
    """Return the input that `pieces` splits into these parts of at most 255 octets."""
    return b"".join(bytes((len(each),)) + each for each in parts)


def as_text(octets: bytes) -> str:
    """Return a text of any characters."""
    return octets.decode("utf-8", "surrogateescape")
