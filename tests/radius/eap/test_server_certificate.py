"""Tests of the certificate that the TLS server for EAP shows: its files, its chain, and its packets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from sallyport.base.errors import ConfigError
from sallyport.radius.eap.packet import PEAP, TLS, TTLS
from sallyport.radius.eap.server import TlsServer
from sallyport.radius.eap.server_certificate import ServerCertificate
from tests.radius.eap.conftest import Site


@pytest.mark.parametrize("place", [0, 1])
def test_files_that_cannot_be_used(site: Site, tmp_path: Path, place: int) -> None:
    """The error names the file, whether the file is missing or has the wrong content."""
    server = site.authority.certificate("radius.example.com").file
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("empty.pem", "nowhere.pem"):
        files = [server, server]
        files[place] = tmp_path / name
        with pytest.raises(ConfigError, match=name):
            ServerCertificate.read(*files)


def test_a_key_of_another_certificate(site: Site) -> None:
    """A key that does not belong to the server's certificate is refused when the files are read."""
    own, other = (site.authority.certificate(name).file for name in ("radius.example.com", "other"))
    with pytest.raises(ConfigError, match=f"{other}: the file does not contain the key of the server's certificate"):
        ServerCertificate.read(own, other)


def test_a_key_that_openssl_refuses(site: Site) -> None:
    """If TLS refuses the certificate, the error has OpenSSL's reason, and no conversation begins with it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505  what is refused
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weak")]), datetime.now(UTC)
    weak = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    text = weak.public_bytes(Encoding.PEM) + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    certificate = ServerCertificate.parse(text, text, chain_name="chain", key_name="key")
    with pytest.raises(ConfigError, match="key too small"):
        TlsServer(replace(site.configuration, certificate=certificate))


@pytest.mark.parametrize("kind", [TLS, TTLS, PEAP])
@pytest.mark.parametrize("more", [0, 1])
def test_only_the_chain_of_the_file_is_sent(site: Site, kind: int, more: int) -> None:
    """The server sends the certificates of its file, and adds no root from the authorities of client certificates."""
    server = site.authority.certificate("radius.example.com").file
    text = server.read_bytes() + more * site.authority.file.read_bytes()
    certificate = ServerCertificate.parse(text, text, chain_name="chain", key_name="key")
    tls = TlsServer(replace(site.configuration, certificate=certificate))
    assert len(sent_chain(tls, kind)) == 1 + more


def sent_chain(server: TlsServer, kind: int) -> list[x509.Certificate]:
    """Return the certificates that the server sends in a handshake."""
    tunnel, context = server.tunnel(kind, ""), SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_verify(SSL.VERIFY_NONE, lambda *_: True)
    client = SSL.Connection(context, None)
    client.set_connect_state()
    for _ in range(4):
        try:
            client.do_handshake()
            break
        except SSL.WantReadError:
            tunnel.receive(client.bio_read(1 << 16))
            client.bio_write(tunnel.take())
    return client.get_peer_cert_chain(as_cryptography=True) or []
