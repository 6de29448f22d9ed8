"""The rounds of EAP that a server certificate takes, counted by eapol_test."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from sallyport.certs.authority import KeyKind
from sallyport.certs.folder import CertificateFolder, present
from sallyport.radius.eap.server_certificate import ServerCertificate
from tests.peers.test_eapol import TLS12, TLS13, Bench, is_accepted

pytestmark = pytest.mark.peer

SIZE: Final = 1020
"""Octets of an EAP packet without Framed-MTU."""
ROUNDS: Final[Mapping[tuple[KeyKind, bool], int]] = {
    (KeyKind.RSA, True): 9, (KeyKind.RSA, False): 8, (KeyKind.P256, True): 8, (KeyKind.P256, False): 7,
}  # fmt: skip
"""The challenges of a login with PEAP-MSCHAPv2, by the kind of the keys and whether the server sends the root."""


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("with_root", [True, False])
@pytest.mark.parametrize("kind", KeyKind)
async def test_rounds_of_a_login(tmp_path: Path, kind: KeyKind, with_root: bool, version: str) -> None:
    """A certificate with P-256 and without the root takes two rounds less than one with RSA and the root."""
    folder = CertificateFolder(tmp_path)
    folder.make("Sallyport CA", ["radius.example.org"], present(), kind, with_root=with_root)
    bench = Bench(tmp_path)
    bench.authority.file = folder.ca
    server = ServerCertificate.read(folder.server, folder.server_key)
    bench.configuration = replace(bench.configuration, certificate=server, ca_file=folder.ca, fragment_size=SIZE)
    result = await bench.run("PEAP", 'phase2="auth=MSCHAPV2"', f'phase1="{version}"')
    assert is_accepted(result), result.output
    assert result.output.count("(Access-Challenge)") == ROUNDS[kind, with_root]
