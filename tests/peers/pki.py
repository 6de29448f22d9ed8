"""Real authorities on loopback: `openssl ca` and `openssl ocsp`, and certomancer, which publishes lists and answers
OCSP."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.areas.authorities.revocation.issuer import Issuer
from tests.peers.programs import find
from tests.peers.published import serving
from tests.ports import free_port

START_S = 60
CERTOMANCER = """
external-url-prefix: "http://127.0.0.1:{port}"
keysets:
  corp:
    path-prefix: "."
    keys:
      ca: {{path: ca.key}}
      ocsp: {{path: ocsp.key}}
      client: {{path: client.key}}
pki-architectures:
  corp:
    keyset: corp
    entity-defaults: {{organization-name: "Example"}}
    entities:
      ca: {{common-name: "Example CA"}}
      ocsp: {{common-name: "Example OCSP"}}
      alice: {{common-name: "alice"}}
      bob: {{common-name: "bob"}}
    certs:
      ca:
        issuer: ca
        validity: &always {{valid-from: "2020-01-01T00:00:00+0000", valid-to: "2100-01-01T00:00:00+0000"}}
        extensions:
          - {{id: basic_constraints, critical: true, value: {{ca: true}}}}
          - {{id: key_usage, critical: true, smart-value: {{schema: key-usage, params: [key_cert_sign, crl_sign]}}}}
      ocsp:
        issuer: ca
        validity: *always
        extensions:
          - {{id: extended_key_usage, value: [ocsp_signing]}}
          - {{id: ocsp_no_check}}
      alice: &client
        subject-key: client
        issuer: ca
        validity: *always
        extensions: &addresses
          - id: crl_distribution_points
            smart-value: {{schema: crl-dist-url, params: {{crl-repo-names: [ca]}}}}
          - id: authority_information_access
            smart-value: {{schema: aia-urls, params: {{ocsp-responder-names: [ca]}}}}
      bob:
        subject-key: client
        issuer: ca
        validity: *always
        extensions: *addresses
        revocation: {{revoked-since: "2021-01-01T00:00:00+0000", reason: key_compromise}}
    services:
      ocsp:
        ca: {{for-issuer: ca, responder-cert: ocsp, signing-key: ocsp}}
      crl-repo:
        ca: {{for-issuer: ca, signing-key: ca, simulated-update-schedule: "P30D"}}
"""


# Its own server writes times with fractions of a second, which RFC 6960 section 4.2.2.1 forbids.
ANIMATED = """
import sys
from datetime import datetime, timezone
from certomancer.integrations.animator import Animator, AnimatorArchStore
from certomancer.registry import CertomancerConfig
from werkzeug.serving import run_simple

configuration = CertomancerConfig.from_file(sys.argv[1])
now = datetime.now(timezone.utc).replace(microsecond=0)
run_simple("127.0.0.1", int(sys.argv[2]), Animator(AnimatorArchStore(configuration.pki_archs), at_time=now))
"""


def write_issuer(directory: Path, name: str, issuer: Issuer) -> tuple[Path, Path]:
    """Write the certificate and the key of an authority or a responder, and return the files."""
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    certificate.write_bytes(issuer.certificate.public_bytes(Encoding.PEM))
    key.write_bytes(issuer.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key


class OpensslAuthority:
    """The database of `openssl ca` for an authority. revoked: the certificates that are revoked. requests: the number
    of requests to its responder."""

    def __init__(self, directory: Path, issuer: Issuer, known: Sequence[x509.Certificate]) -> None:
        self.directory, self.issuer = directory, issuer
        self.certificate, self.key = write_issuer(directory, "ca", issuer)
        self.known = list(known)
        self.revoked: set[int] = set()
        self.requests = 0
        self._number = 1

    def write_index(self) -> Path:
        """Write the database, and return its file."""
        lines = []
        for each in self.known:
            is_revoked = each.serial_number in self.revoked
            serial = f"{each.serial_number:X}"
            state = ("R", "991231235959Z", "210101000000Z,keyCompromise") if is_revoked else ("V", "991231235959Z", "")
            serial = serial if len(serial) % 2 == 0 else f"0{serial}"
            lines.append("\t".join((*state, serial, "unknown", f"/CN={serial}")))
        path = self.directory / "index.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def crl(self, *options: str) -> bytes:
        """Return a list in DER that `openssl ca` has signed. options: such as ("-crldays", "1")."""
        self.write_index()
        (self.directory / "crlnumber").write_text(f"{self._number:04X}\n")
        self._number += 1
        configuration = self.directory / "ca.cnf"
        configuration.write_text(
            "[ca]\ndefault_ca=own\n[own]\n"
            f"database={self.directory}/index.txt\ncrlnumber={self.directory}/crlnumber\n"
            "default_md=sha256\n"
        )
        run(
            "ca", "-gencrl", "-config", str(configuration), "-cert", str(self.certificate), "-keyfile", str(self.key),
            "-out", str(self.directory / "crl.pem"), *(options or ("-crldays", "7")),
        )  # fmt: skip
        return run("crl", "-in", str(self.directory / "crl.pem"), "-outform", "DER")

    @contextmanager
    def responding(self, *options: str, signer: Issuer | None = None) -> Iterator[str]:
        """Yield the address of a server on loopback whose responses `openssl ocsp` makes; by itself, it would listen at
        all addresses. options: such as ("-nmin", "1"). signer: the responder; by default the authority itself."""
        certificate, key = write_issuer(self.directory, "responder", signer or self.issuer)
        asked, response = self.directory / "asked", self.directory / "response"
        command = (
            "ocsp", "-index", str(self.write_index()), "-CA", str(self.certificate), "-rsigner", str(certificate),
            "-rkey", str(key), "-rmd", "sha256", "-reqin", str(asked), "-respout", str(response),
            *(options or ("-nmin", "60")),
        )  # fmt: skip

        def respond(request: bytes) -> bytes:
            self.requests += 1
            asked.write_bytes(request)
            run(*command)
            return response.read_bytes()

        with serving() as web:
            web.respond = respond
            yield f"{web.url}/"


def run(*command: str) -> bytes:
    """Run an openssl command, and return its output."""
    return subprocess.run([find("openssl"), *command], capture_output=True, timeout=60, check=True).stdout


@contextmanager
def certomancer(directory: Path) -> Iterator[tuple[Mapping[str, x509.Certificate], str]]:
    """Yield the certificates of a running certomancer by name, and its address."""
    port = free_port()
    for name in ("ca", "ocsp", "client"):
        write_issuer(directory, name, Issuer.new())
    (directory / "certomancer.yml").write_text(CERTOMANCER.format(port=port))
    program = [sys.executable, "-m", "certomancer", "--config", str(directory / "certomancer.yml")]
    made = directory / "made"
    subprocess.run(
        [*program, "mass-summon", "corp", str(made), "--no-pfx"], check=True, capture_output=True, timeout=60
    )
    found = {
        each.name.partition(".")[0]: x509.load_pem_x509_certificate(each.read_bytes()) for each in made.rglob("*.pem")
    }
    server = [sys.executable, "-c", ANIMATED, str(directory / "certomancer.yml"), str(port)]
    with running(server, directory, port):
        yield found, f"http://127.0.0.1:{port}"


@contextmanager
def running(command: Sequence[str], directory: Path, port: int) -> Iterator[None]:
    """Run a server until the block ends. port: the port at which it accepts connections."""
    path = directory / "output"
    with path.open("wb") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + START_S
            while not _accepts(port):
                assert process.poll() is None and time.monotonic() < until, path.read_text(errors="replace")
                time.sleep(0.05)
            yield
        finally:
            process.kill()
            process.wait()


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
