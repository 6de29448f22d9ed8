"""Tests that compare the import of clients.conf with FreeRADIUS itself.

At this level `freeradius -XCx` prints each client with its values and its secret, and prints its network after
`Adding client`. The signature of an answer proves that FreeRADIUS uses the printed secret.
"""

import hashlib
import ipaddress
import os
import re
import shutil
import socket
import struct
import subprocess
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import trio

from sallyport.areas.clients.freeradius import Entry, read
from sallyport.base.errors import ClientsFileError
from tests.ports import free_port

SERVER = shutil.which("freeradius", path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
SHARE = Path("/usr/share/freeradius")
DEBIAN = Path("/etc/freeradius/3.0")

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(SERVER is None, reason="freeradius is not installed"),
]

RADIUSD = """\
prefix = /usr
name = radiusd
raddbdir = {directory}
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
modules {{
}}
$INCLUDE clients.conf
server default {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {port}
    }}
    authorize {{
    }}
}}
"""


@dataclass(slots=True)
class Theirs:
    """A client as FreeRADIUS prints it.

    Octets that are not ASCII, and control characters, are printed as `?` or a blank.
    """

    label: str
    network: str = ""
    values: dict[str, str] = field(default_factory=dict)


def configured(folder: Path, octets: bytes, port: int = 18120) -> Path:
    """Write a configuration directory with these clients."""
    (folder / "dictionary").write_text(f"$INCLUDE {SHARE / 'dictionary'}\n")
    (folder / "radiusd.conf").write_text(RADIUSD.format(directory=folder, port=port))
    (folder / "clients.conf").write_bytes(octets)
    return folder / "clients.conf"


def run(folder: Path, *flags: str, **environ: str) -> tuple[int, str]:
    """Return the exit status of `freeradius -XC` and its output."""
    command = [str(SERVER), "-XC", *flags, "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, timeout=30, check=False, env=os.environ | environ)
    return done.returncode, done.stdout.decode("latin-1")


def understood(output: str) -> list[Theirs]:
    """Return the clients of the debug output, in order."""
    clients: list[Theirs] = []
    for raw in output.partition("Loading Clients")[2].split("\n"):
        line = re.sub(r"^.*? : \w+: ?", "", raw)
        if head := re.match(r" client (.*) \{$", line):
            clients.append(Theirs(head[1]))
        elif clients and (value := re.match(r'\s+(\w+) = "?(.*?)"?$', line)):
            clients[-1].values.setdefault(value[1], value[2])
        elif clients and (added := re.match(r"Adding client (\S+) ", line)):
            clients[-1].network = added[1]
    return clients


def printed(text: str) -> str:
    """Return a text as the log shows it, except for the octets that the log replaces."""
    return re.sub(r"[^ -~]", "?", text)


def agree(ours: Entry, theirs: Theirs) -> None:
    """Return whether the name, the network, the secret and the signature setting are equal."""
    assert printed(ours.name) == printed(theirs.values.get("shortname", theirs.label))
    assert ours.addresses == ipaddress.ip_network(theirs.network, strict=False)
    assert printed(ours.secret.reveal().decode("latin-1")) == printed(theirs.values["secret"])
    # 3.2.1 has yes and no; auto came with 3.2.5, and an unset one means auto there.
    required = theirs.values["require_message_authenticator"].lower() in ("yes", "true", "on")
    assert (ours.require_message_authenticator == "yes") is required


SECRETS = [
    "plain",
    "a#b",
    "a #b",
    "a;b=c",
    "a}{",
    "a,b",
    "a,",
    'a"b',
    r"a\nb\\c\101",
    "/a}",
    "$a$$",
    "%{a}",
    "=",
    "{",
    "!a",
    '"a b # c" # d',
    '"a#b"#c',
    r'"a\"b"',
    r'"a\'b"',
    r'"a\\b"',
    r'"a\\\"b"',
    r'"\101\x41\n\t\r\q"',
    r"'a\'b'",
    r"'a\"b\n\\'",
    "'${a}$ENV{HOME}'",
    '"a${top}b"',
    "a${top}$ENV{IMPORTED}",
    '"$${top}"',
    r'"\${top}"',
    "'a','b'",
    r"`a\`b`",
    "'\xe9\xa0\x85'",
    '"\xe9\x01\x7f"',
    '"ab\\\n  cd"',
    "ab\\\ncd",
    "ab\\\r\ncd\r",
    '"ab\\"\\\n    cd"',
    "ab \\\n\t# cd",
]
ADDRESSES = [
    "ipaddr = 192.0.2.{n}",
    "ipaddr = 10.{n}.0.0/16",
    "ipaddr = 10.{n}.7.7/24",
    "ipaddr = 11.{n}/16",
    "ipv4addr = 12.{n}.1/024",
    "ipaddr = 13.{n}.0.0\nnetmask = 16",
    "ipv6addr = 2001:db8:{n}::\nnetmask = 48",
    "ipaddr = 2001:db8::{n}",
    "ipaddr = 2001:DB9:{n}::1/64",
    "ipaddr = 14.0.0.{n}\nipaddr = 14.0.1.{n}",
    "ipaddr = 15.0.0.{n}\nipv4addr = 15.0.1.{n}",
    "ipv4addr = 16.0.0.{n}\nipv6addr = 2001:db8:16::{n}",
]
ALL = ["ipaddr = *", "ipv6addr = *", "ipaddr = 0.0.0.0", "ipaddr = ::", "ipaddr = 0.0.0.0/32", "ipaddr = 192.0.2.1/0"]
REST = """\
client 17.0.0.0/24 {
    secret = old
}
client "17.0.1.7/24" {
    secret = old
    netmask = 8
}
client 17.1/16 { secret = old, shortname = short }
client 2001:db8:17::/48 {
    secret = old
}
client 'a "b" ${top}' { ipaddr = 18.0.0.1, secret = "x" } client c-d/e { ipaddr=18.0.0.2,secret=y };
\tclient\tf{ipaddr\t:=\t18.0.0.3
"secret" = "z" # }
limit { max_connections = 1
}
update x { a += b
}
foo
foo # bar
foo, secret = never
"secr\\145t" = twice
nas_type = ${.secret}
require_message_authenticator = YES
},
client g {
    ipaddr = 18.0.0.4
    secret = ${client[f].ipaddr}
    shortname = "${later}${section[two].x}${section.x}"
    require_message_authenticator = off
}
section one { x = 1
}
section two { x = 2
}
later = below
client h {
    $INCLUDE h-part the rest is ignored
    $-INCLUDE missing
    $TEMPLATE branch
}
$include 'h i'
"""


def everything() -> bytes:
    """Return one file with all forms that FreeRADIUS accepts."""
    text = "top = TOP\ntemplates { branch { secret = templated\nnas_type = cisco\n}\n}\n"
    for number, secret in enumerate(SECRETS, 1):
        text += f"client s{number} {{\nipaddr = 198.51.100.{number}\nsecret = {secret}\n}}\n"
    for number, address in enumerate(ADDRESSES, 1):
        text += f"client n{number} {{\n{address.format(n=number)}\nsecret = n\n}}\n"
    return f"{text}{REST}".encode("latin-1")


def test_every_form_of_a_client(tmp_path: Path) -> None:
    """FreeRADIUS and the import find the same clients with the same networks, secrets and settings."""
    path = configured(tmp_path, everything())
    (tmp_path / "h-part").write_text("ipaddr = 18.0.0.5\n")
    (tmp_path / "h i").write_text("client i { ipaddr = 18.0.0.6, secret = i\n}\n$INCLUDE h-part\n")
    code, output = run(tmp_path, "-x", IMPORTED="octets")
    assert code == 0, output
    theirs, ours = understood(output), read(path, environ={"IMPORTED": "octets"})
    assert ours.unusable == ()
    assert len(ours) == len(theirs) == len(SECRETS) + len(ADDRESSES) + 10
    for entry, client in zip(ours, theirs, strict=True):
        agree(entry, client)


@pytest.mark.parametrize("address", ALL)
def test_forms_that_mean_everybody(tmp_path: Path, address: str) -> None:
    """A client that FreeRADIUS accepts from any address is imported as such."""
    path = configured(tmp_path, f"client all {{\n{address}\nsecret = x\n}}\n".encode())
    (theirs,) = understood(run(tmp_path, "-x")[1])
    (ours,) = read(path)
    agree(ours, theirs)
    assert ours.addresses.prefixlen == 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("ipaddr = 192.0.2.1/", "0.0.0.0/0"),
        ("ipaddr = 192.0.2.0\nnetmask = 255.255.255.0", "192.0.2.0/32"),
        ("ipaddr = 010.0.0.1", "8.0.0.1/32"),
        ("ipaddr = 10.1", "10.0.0.1/32"),
        ("ipaddr = 192.0.2.0\nnetmask = 33", "192.0.2.0/33"),
        ("ipaddr = localhost", "127.0.0.1/32"),
    ],
)
def test_where_the_import_is_stricter(tmp_path: Path, address: str, network: str) -> None:
    """If FreeRADIUS reads a client differently from how it looks, or resolves its name by DNS, the import sets the
    client aside."""
    path = configured(tmp_path, f"client odd {{\n{address}\nsecret = x\n}}\n".encode())
    assert [client.network for client in understood(run(tmp_path, "-x")[1])] == [network]
    ours = read(path)
    assert (list(ours), [bad.name for bad in ours.unusable]) == ([], ["odd"])


@pytest.mark.parametrize(
    "inside",
    [
        'secret = "a',
        "secret = 'a\\'",
        "secret = a }",
        "secret = a b",
        'secret = "a"b',
        "secret = a\xe9",
        "secret = a\x01",
        "secret == a",
        "secret += a",
        "secret =* a",
        "secret =~ a",
        "secret: a",
        "secret a",
        "foo;",
        "foo }",
        "foo\n{\n}",
        "foo bar baz {\n}",
        "foo `bar` {\n}",
        "secret = ${a",
        "secret = ab \\\n  cd",
        "x = " + "y" * 8190,
        f"x = {'y' * 5000}\nz = ${{x}}${{x}}",
        "$INCLUDE",
        "$INCLUDE missing",
        "$INCLUDE missing/",
        "$-INCLUDE missing/",
        "$TEMPLATE missing",
        "}\n}",
        "section {",
    ],
)
def test_a_file_that_freeradius_refuses_is_refused(tmp_path: Path, inside: str) -> None:
    """If FreeRADIUS cannot parse a file, the import also refuses the whole file."""
    path = configured(tmp_path, f"client a {{\nipaddr = ::1\n{inside}\n}}\n".encode("latin-1"))
    code, output = run(tmp_path)
    assert code == 1
    assert "Loading Clients" not in output
    with pytest.raises(ClientsFileError):
        read(path)


def test_included_directory(tmp_path: Path) -> None:
    """FreeRADIUS and the import read the same files from an included directory."""
    path = configured(tmp_path, b"$INCLUDE clients.d/\n")
    (tmp_path / "clients.d" / "inner").mkdir(parents=True)
    for number, name in enumerate(("a.conf", "b-c", "d_e.bak", ".f", "g~", "#h#", "i j", "k+", "inner/l"), 1):
        text = f"client n{number} {{\nipaddr = 192.0.2.{number}\nsecret = x\n}}\n"
        (tmp_path / "clients.d" / name).write_text(text)
    theirs = sorted(client.label for client in understood(run(tmp_path, "-x")[1]))
    assert sorted(entry.name for entry in read(path)) == theirs == ["n1", "n2", "n3"]


@pytest.mark.skipif(not os.access(DEBIAN / "radiusd.conf", os.R_OK), reason="freeradius-config is not readable")
def test_the_whole_configuration_of_debian(tmp_path: Path) -> None:
    """The import reads the complete configuration of Debian's FreeRADIUS, with policies and modules, and finds the same
    clients."""
    code, output = run(DEBIAN, "-x")
    ours = read(DEBIAN / "radiusd.conf")
    theirs = [client for client in understood(output) if client.network]
    assert [entry.name for entry in ours] == [client.label for client in theirs]
    assert code == 0 or "clients.conf[" not in output
    for entry, client in zip(ours, theirs, strict=True):
        agree(entry, client)


async def answered(address: str, port: int) -> tuple[bytes, bytes]:
    """Return the authenticator of an Access-Request that is sent from that address, and the answer to it."""
    authenticator, user = os.urandom(16), b"\x01\x05bob"
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client, trio.fail_after(10):
        await client.bind((address, 0))
        await client.sendto(struct.pack("!BBH", 1, 7, 20 + len(user)) + authenticator + user, ("127.0.0.1", port))
        return authenticator, await client.recv(4096)


def signed(authenticator: bytes, answer: bytes, secret: bytes) -> bool:
    """Return the Response Authenticator (RFC 2865 section 3)."""
    return hashlib.md5(answer[:4] + authenticator + answer[20:] + secret).digest() == answer[4:20]


async def ready(output: trio.abc.ReceiveStream) -> None:
    """Wait until the server is ready."""
    seen = b""
    with trio.fail_after(20):
        while b"Ready to process" not in seen:
            chunk = await output.receive_some()
            assert chunk, seen
            seen += chunk


async def drain(output: trio.abc.ReceiveStream) -> None:
    """Read the server's output, so that it does not block."""
    while await output.receive_some():
        pass


async def test_secrets_sign_its_answers(tmp_path: Path) -> None:
    """FreeRADIUS signs with the same octets that the import reads as the secret, whatever its log shows."""
    port = free_port()
    written = [secret for secret in SECRETS if "${top}" not in secret]
    clients = [f"client s{n} {{\nipaddr = 127.0.1.{n}\nsecret = {s}\n}}\n" for n, s in enumerate(written, 1)]
    path = configured(tmp_path, "".join(clients).encode("latin-1"), port)
    command = [str(SERVER), "-X", "-d", str(tmp_path)]
    start = partial(trio.run_process, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    async with trio.open_nursery() as nursery:
        server: trio.Process = await nursery.start(start)
        assert server.stdout is not None
        await ready(server.stdout)
        nursery.start_soon(drain, server.stdout)
        for entry, secret in zip(read(path), written, strict=True):
            authenticator, answer = await answered(str(entry.addresses.network_address), port)
            assert signed(authenticator, answer, entry.secret.reveal()), secret
        nursery.cancel_scope.cancel()
