"""Whose certificate a peer has shown."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.certs.peer import peer
from tests.radius.eap.certificates import Authority


def test_names_that_cannot_be_read(tmp_path: Path) -> None:
    """An ediPartyName, which OpenSSL verifies: the peer is told off like any other whose certificate is no good."""
    names = bytes.fromhex("3008a506a1040c027879")
    certificate = Authority(tmp_path).certificate("proxy", names=names).certificate
    with pytest.raises(ValueError, match="not supported"):
        peer(certificate.public_bytes(Encoding.DER))
