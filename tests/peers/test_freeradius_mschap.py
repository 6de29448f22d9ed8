"""MS-CHAP against FreeRADIUS: both give the same verdict, proof, keys and error for the same request.

FreeRADIUS checks the responses, and its answers are decrypted and compared with the service's.
"""

import subprocess
from collections.abc import Iterator

import pytest

from sallyport.radius.attributes import (
    USER_NAME,
    VENDOR_SPECIFIC,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_RESPONSE,
    MS_CHAP_CHALLENGE,
    MS_CHAP_ERROR,
    MS_CHAP_MPPE_KEYS,
    MS_CHAP_RESPONSE,
    MS_MPPE_RECV_KEY,
    MS_MPPE_SEND_KEY,
    MsChap1,
    MsChap2,
    challenge_response,
    nt_hash,
    nt_hash_hash,
)
from sallyport.radius.mschap_reply import ENCRYPTION, ErrorCode, push_error, push_success
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    SharedSecret,
    decode_reply,
    encode_request,
)
from sallyport.radius.password import reveal_blocks
from sallyport.radius.salted import Hiding, rehide
from tests.peers.freeradius import running_freeradius
from tests.peers.programs import find, needs
from tests.ports import free_port
from tests.radius_client import RadiusClient

SECRET, USER, PASSWORD = "between-nas-and-server", b"ann", "pass wörd, long enough for two blocks"
HASH = nt_hash(PASSWORD.encode())

RADIUSD = """\
prefix = {directory}
logdir = {directory}
run_dir = {directory}
libdir = /usr/lib/freeradius
pidfile = {directory}/pid
log {{
    destination = stdout
}}
security {{
    reject_delay = 0
    allow_vulnerable_openssl = yes    # the check of the library's version; nothing here speaks TLS
}}
client nas {{
    ipaddr = 127.0.0.1
    secret = {secret}
}}
modules {{
    mschap {{
    }}
}}
server default {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {port}
    }}
    authorize {{
        update control {{
            &Cleartext-Password := "{password}"
        }}
        mschap
    }}
    authenticate {{
        mschap
    }}
}}
"""

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RadiusClient]:
    """Yield a client of FreeRADIUS. FreeRADIUS knows ann's password."""
    directory = tmp_path_factory.mktemp("raddb")
    port = free_port()
    configuration = RADIUSD.format(directory=directory, port=port, secret=SECRET, password=PASSWORD)
    with running_freeradius(directory, configuration), RadiusClient(port, SECRET) as client:
        yield client


@pytest.fixture(params=["MS-CHAP", "MS-CHAPv2"])
def blank(request: pytest.FixtureRequest) -> MsChap1 | MsChap2:
    """Return an MS-CHAP attempt without its response."""
    if request.param == "MS-CHAP":
        return MsChap1(5, bytes(range(8)), b"")
    return MsChap2(6, bytes(range(16)), bytes(range(16, 32)), b"")


def made(blank: MsChap1 | MsChap2, hashed: bytes) -> MsChap1 | MsChap2:
    """Return the attempt that a client makes with an NT hash."""
    return blank._replace(response=challenge_response(blank.nt_challenge(USER), hashed))


def answered(server: RadiusClient, attempt: MsChap1 | MsChap2) -> tuple[int, bytes, Hiding]:
    """Return the code and the attributes of FreeRADIUS's answer, and the encryption of its keys."""
    if isinstance(attempt, MsChap1):
        kind, middle = MS_CHAP_RESPONSE, b"\x01" + bytes(24)
    else:
        kind, middle = MS_CHAP2_RESPONSE, b"\0" + attempt.peer_challenge + bytes(8)
    response = bytes((attempt.identifier,)) + middle + attempt.response
    request = encode_request(
        ACCESS_REQUEST,
        attempt.identifier,
        server.secret,
        push_attribute(USER_NAME, USER)
        + push_vendor_attribute(MICROSOFT, MS_CHAP_CHALLENGE, attempt.challenge)
        + push_vendor_attribute(MICROSOFT, kind, response),
    )
    server.send(request)
    answer = server.sock.recv(4096)
    code, _ = decode_reply(answer, request, server.secret)
    return code, answer[20:], Hiding(server.secret, request[4:20])


def opened(attributes: bytes, hiding: Hiding) -> dict[int, bytes]:
    """Return the Microsoft attributes of a reply, with decrypted keys."""
    clear: dict[int, bytes] = {}
    for kind, value in pull_attributes(attributes):
        vendor, pairs = pull_vendor_attributes(value)
        if (kind, vendor) != (VENDOR_SPECIFIC, MICROSOFT):
            continue
        for inner, octets in pairs:
            if inner in (MS_MPPE_SEND_KEY, MS_MPPE_RECV_KEY):
                clear[inner] = hiding.reveal(octets)
            elif inner == MS_CHAP_MPPE_KEYS:
                clear[inner] = reveal_blocks(octets, hiding.secret, hiding.authenticator)
            else:
                clear[inner] = octets
    return clear


@needs("freeradius")
def test_a_right_password(server: RadiusClient, blank: MsChap1 | MsChap2) -> None:
    """FreeRADIUS accepts the response. The proof, keys, policy and types in its answer equal those of the service."""
    attempt = made(blank, HASH)
    code, attributes, hiding = answered(server, attempt)
    assert code == ACCESS_ACCEPT
    ours = push_success(attempt, nt_hash_hash(HASH), USER, hiding) + ENCRYPTION
    assert opened(attributes, hiding) == opened(ours, hiding)


@needs("freeradius")
def test_its_keys_pass_a_proxy(server: RadiusClient, blank: MsChap1 | MsChap2) -> None:
    """If keys that FreeRADIUS encrypted are encrypted again for a NAS with another secret, the decrypted keys are
    unchanged."""
    _, attributes, hiding = answered(server, made(blank, HASH))
    nas = Hiding(SharedSecret(b"of the NAS"), bytes(range(16)))
    assert opened(rehide(attributes, hiding, nas), nas) == opened(attributes, hiding)


@needs("freeradius")
def test_a_wrong_password(server: RadiusClient, blank: MsChap1 | MsChap2) -> None:
    """FreeRADIUS rejects with the same error that the service makes for the same challenge."""
    attempt = made(blank, nt_hash(b"wrong"))
    code, attributes, hiding = answered(server, attempt)
    assert code == ACCESS_REJECT
    error = opened(attributes, hiding)[MS_CHAP_ERROR]
    challenge = bytes.fromhex(error.partition(b" C=")[2].partition(b" ")[0].decode()).ljust(16, b"\0")
    ours = push_error(
        attempt, ErrorCode.AUTHENTICATION_FAILURE, retry=True, challenge=challenge, message="Authentication rejected"
    )
    assert error == opened(ours, hiding)[MS_CHAP_ERROR]


@needs("smbencrypt")
def test_hashes_of_smbencrypt() -> None:
    """smbencrypt makes the same NT hash, for passwords of one MD4 block and of several."""
    passwords = [("Zz9~ !#" * 15)[:size] for size in range(1, 100)]
    done = subprocess.run([find("smbencrypt"), *passwords], capture_output=True, text=True, check=True, timeout=30)
    theirs = [line.split()[-1].lower() for line in done.stdout.splitlines()[-len(passwords) :]]
    assert theirs == [nt_hash(password.encode()).hex() for password in passwords]
