"""The entries of a certificate revocation list (RFC 5280 section 5.1), as a compact table of serial numbers.

A list of 20 MiB has half a million entries. `cryptography` parses all of them in one call, which would stop the event
loop for some hundred milliseconds, and makes an object for each of them. Therefore this module walks over the DER in
Python, in a worker thread: other threads run between two entries. The rest of the list, without its entries, is parsed
by `cryptography`.

A table has 21 octets for each entry. It is divided into buckets by Python's hash, which is seeded at random, so that no
authority can choose serial numbers that fall into one bucket. Sorting all entries would be as compact, but is a single
call that stops the event loop.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

SERIAL: Final = 20
"""Maximum number of octets of a serial number (RFC 5280 section 4.1.2.2)."""
WIDTH: Final = SERIAL + 1
"""Number of octets of an entry in a table."""
REVOKED: Final = b"\0"
REMOVED: Final = b"\1"
"""The first octet of an entry. An entry of a delta list can remove a certificate from the complete list (reason
removeFromCRL)."""
MAX_HEAD_SIZE: Final = 64 * 1024
"""Maximum number of octets of a list without its entries. `cryptography` holds the interpreter lock while it reads
them."""
_IN_A_BUCKET: Final = 128
_KINDS: Final = 64

_SEQUENCE: Final = 0x30
_INTEGER: Final = 0x02
_BOOLEAN: Final = 0x01
_TIMES: Final = (0x17, 0x18)  # UTCTime, GeneralizedTime
_CRITICAL: Final = b"\x01\x01\xff"
_REASON: Final = b"\x06\x03\x55\x1d\x15"  # id-ce-cRLReasons, 2.5.29.21
_KNOWN: Final = (_REASON, b"\x06\x03\x55\x1d\x18")  # and id-ce-invalidityDate, 2.5.29.24
_ISSUER: Final = b"\x06\x03\x55\x1d\x1d"  # id-ce-certificateIssuer, 2.5.29.29
_REMOVE: Final = b"\x0a\x01\x08"  # ENUMERATED removeFromCRL


class ListError(ValueError):
    """The error for a revocation list that cannot be used. The message says why."""


def read_header(octets: memoryview, at: int) -> tuple[int, int, int]:
    """Return the tag of a DER value, the offset of its content, and the offset of its end. Raises ListError."""
    try:
        tag, size = octets[at], octets[at + 1]
        at += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(octets[at : at + count])
            if not 0 < count <= 4 or at + count > len(octets):
                raise ListError("it is not encoded in DER")
            at += count
    except IndexError:
        raise ListError("it is truncated") from None
    if at + size > len(octets):
        raise ListError("it is truncated")
    return tag, at, at + size


@dataclass(frozen=True, slots=True)
class ListParts:
    """The parts of a list in DER.

    head: the same list without entries, in DER; its signature does not match. signed: the octets that the signature
    covers. entries: the octets of the entries. issuer: the name of its issuer in DER.
    """

    head: bytes
    signed: memoryview
    entries: memoryview
    issuer: bytes


def split_list(der: bytes) -> ListParts:
    """Separate the entries of a list from the rest. The entries are not copied. Raises ListError."""
    octets = memoryview(der)
    tag, start, end = read_header(octets, 0)
    if tag != _SEQUENCE or end != len(octets):
        raise ListError("it is not a certificate revocation list in DER")
    tag, inner, signed_end = read_header(octets, start)
    if tag != _SEQUENCE:
        raise ListError("it is not a certificate revocation list in DER")
    at, has_times, issuer = inner, 0, b""
    while at < signed_end:  # version?, signature, issuer, thisUpdate, nextUpdate?, revokedCertificates?, extensions?
        tag, content, after = read_header(octets, at)
        if after > signed_end:
            raise ListError("it is truncated")
        if has_times and tag not in _TIMES:
            break
        if not has_times and tag == _SEQUENCE and after - at <= MAX_HEAD_SIZE:
            issuer = bytes(octets[at:after])  # the last value before the times
        has_times += tag in _TIMES
        at = after
    entries, rest = octets[at:at], at
    if at < signed_end:
        tag, content, after = read_header(octets, at)
        if tag == _SEQUENCE:
            entries, rest = octets[content:after], after
    if (at - inner) + (signed_end - rest) + (end - signed_end) > MAX_HEAD_SIZE:
        raise ListError(f"its name, extensions and signature have more than {MAX_HEAD_SIZE // 1024} KiB")
    body = bytes(octets[inner:at]) + bytes(octets[rest:signed_end])
    tail = bytes(octets[signed_end:end])
    head = _encoded(_encoded(body) + tail)
    return ListParts(head, octets[start:signed_end], entries, issuer)


def _encoded(content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((_SEQUENCE, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((_SEQUENCE, 0x80 | len(length))) + length + content


def pull_entries(octets: memoryview) -> Iterator[bytes]:
    """Yield each entry of a list in the form of a table. Raises ListError.

    Raises ListError also if an entry has a critical extension that this service does not know, because the list must
    not be used then (RFC 5280 section 5.3), or if it names another issuer (an indirect list).
    """
    at, size = 0, len(octets)
    kinds: dict[bytes, bytes] = {}  # by the extensions: most entries have the same few
    while at < size:
        # Nearly all entries have short lengths, and this is the loop that takes the time.
        if at + 3 < size and octets[at] == _SEQUENCE and octets[at + 1] < 0x80 and octets[at + 2] == _INTEGER:
            start = at + 4
            end, at = start + octets[at + 3], at + 2 + octets[at + 1]
        else:
            tag, content, at = read_header(octets, at)
            number_tag, start, end = read_header(octets, content)
            if tag != _SEQUENCE or number_tag != _INTEGER:
                raise ListError("an entry has no serial number")
        if end > at or at > size:
            raise ListError("it is truncated")
        serial = bytes(octets[start:end])
        if len(serial) > SERIAL:
            serial = serial.removeprefix(b"\0")
        kind = REVOKED
        _, _, after = read_header(octets, end)  # the date
        if after < at:
            extensions = bytes(octets[after:at])
            known = kinds.get(extensions)
            kind = _kind_of(memoryview(extensions)) if known is None else known
            if len(kinds) < _KINDS:
                kinds[extensions] = kind
        if not 0 < len(serial) <= SERIAL:
            raise ListError(f"a serial number has {len(serial)} octets; at most {SERIAL} are allowed")
        yield kind + serial.rjust(SERIAL, b"\0")


def _kind_of(extensions: memoryview) -> bytes:
    """Return the first octet of an entry with these extensions."""
    tag, at, size = read_header(extensions, 0)
    if tag != _SEQUENCE:
        raise ListError("an entry has an unknown field")
    kind = REVOKED
    while at < size:
        _, start, at = read_header(extensions, at)
        extension = bytes(extensions[start:at])
        if extension.startswith(_ISSUER):
            raise ListError("it is an indirect list, which names the issuer of each certificate")
        if extension.startswith(_REASON):
            kind = REMOVED if extension.endswith(_REMOVE) else kind
        elif not extension.startswith(_KNOWN):
            _, _, after = read_header(extensions, start)
            if bytes(extensions[after : after + len(_CRITICAL)]) == _CRITICAL:
                raise ListError("an entry has an unknown critical extension")
    return kind


@dataclass(frozen=True, slots=True)
class Entries:
    """A table of serial numbers. buckets: the entries, WIDTH octets each. count: the number of entries."""

    buckets: tuple[bytes, ...] = field(repr=False)
    count: int

    @classmethod
    def of(cls, entries: Iterable[bytes], expected: int) -> "Entries":
        """Return the table of entries. expected: about the number of entries."""
        buckets = [bytearray() for _ in range(1 + expected // _IN_A_BUCKET)]
        number, count = len(buckets), 0
        for entry in entries:
            buckets[hash(entry[1:]) % number] += entry
            count += 1
        return cls(tuple(map(bytes, buckets)), count)

    def find(self, serial: int) -> bytes | None:
        """Return REVOKED or REMOVED if the table has a serial number, else None."""
        if serial < 0 or serial.bit_length() > 8 * SERIAL:
            return None
        wanted = serial.to_bytes(SERIAL)
        bucket = self.buckets[hash(wanted) % len(self.buckets)]
        for kind in (REMOVED, REVOKED):
            at = bucket.find(kind + wanted)
            while at >= 0:
                if at % WIDTH == 0:
                    return kind
                at = bucket.find(kind + wanted, at + 1)
        return None

    @property
    def octets(self) -> int:
        """The number of octets of the table."""
        return self.count * WIDTH


def packed(octets: bytes | memoryview) -> Iterator[bytes]:
    """Yield the entries of the stored form of a table: all entries one after another."""
    whole = memoryview(octets)
    for at in range(0, len(whole) - WIDTH + 1, WIDTH):
        yield bytes(whole[at : at + WIDTH])
