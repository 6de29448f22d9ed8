"""A ClientHello of TLS 1.3 with one key share (RFC 8446 section 4.1.2), so that the server has to use its group."""

from typing import Final

FFDHE2048, FFDHE6144, FFDHE8192 = 0x0100, 0x0103, 0x0104  # RFC 8446 section 4.2.7
_SHARE_OCTETS: Final = {FFDHE2048: 256, FFDHE6144: 768, FFDHE8192: 1024}
ALERT: Final = b"\x15"
"""The first octet of a record that contains an alert."""


def client_hello(group: int) -> bytes:
    """Return a record with a ClientHello. The public value of its key share is 4."""
    share = (4).to_bytes(_SHARE_OCTETS[group])
    extensions = b"".join(
        (
            _extension(43, b"\x02\x03\x04"),  # supported_versions: TLS 1.3
            _extension(10, _counted(group.to_bytes(2))),  # supported_groups
            _extension(13, _counted(bytes.fromhex("0403 0804 0805 0806 0401"))),  # signature_algorithms
            _extension(51, _counted(group.to_bytes(2) + _counted(share))),  # key_share
        )
    )
    body = b"\x03\x03" + bytes(32) + b"\x00" + _counted(b"\x13\x01") + b"\x01\x00" + _counted(extensions)
    return b"\x16\x03\x01" + _counted(b"\x01" + len(body).to_bytes(3) + body)


def _extension(kind: int, value: bytes) -> bytes:
    return kind.to_bytes(2) + _counted(value)


def _counted(value: bytes) -> bytes:
    return len(value).to_bytes(2) + value
