"""A domain of Active Directory: Samba as its domain controller, and a host that has joined it.

    def test_it(corp: Corp) -> None:
        corp.host.run("wbinfo", "-t")             # on the joined host, where the service runs
        corp.dc.run("samba-tool", "user", ...)    # on the domain controller

There are two machines (`namespace`) with a network between them, because both programs need fixed ports and
directories. The domain has the people of `PEOPLE` and the computer PC1. A user is locked after THRESHOLD wrong
passwords. Like those of Windows, the domain controller accepts MS-CHAP from a client that declares it as MS-CHAP.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peers.authority import Authority
from tests.peers.namespace import Machine, connect, may_unshare
from tests.peers.programs import find

REALM, NT_DOMAIN, BASE = "CORP.EXAMPLE", "CORP", "DC=corp,DC=example"
DC_NAME, DC_ADDRESS, HOST_ADDRESS = "dc1.corp.example", "10.97.0.1", "10.97.0.2"
ADMIN_PASSWORD = "Adm1n-of-corp"
PASSWORD, OTHER_PASSWORD = "Str0ng-Pass", "Pässwort-1"
PEOPLE = {
    "ann": PASSWORD,
    "bob": PASSWORD,
    "lou": PASSWORD,
    "jörg": OTHER_PASSWORD,
    "off": PASSWORD,
    "gone": PASSWORD,
    "must": PASSWORD,
    "reader": PASSWORD,
}
COMPUTER, COMPUTER_PASSWORD = "PC1", "C0mputer-Pass"
STAFF = ("ann", "jörg")
THRESHOLD = 4
READY_S = 240.0
_OWN = {"/etc/samba": "etc", "/var/lib/samba": "lib", "/var/cache/samba": "cache", "/var/log/samba": "log"}
_MEMBER = f"""\
[global]
    netbios name = HOST1
    realm = {REALM}
    workgroup = {NT_DOMAIN}
    security = ads
    idmap config * : backend = tdb
    idmap config * : range = 100000-199999
"""
_BATCH = """\
import json, runpy, sys
_, program, commands = sys.argv
for command in json.loads(commands):
    sys.argv = [program, *command]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code:
            sys.exit(f"{command}: {end.code}")
"""
_PROGRAMS = ("samba", "samba-tool", "winbindd", "ntlm_auth", "net", "wbinfo", "ip", "nsenter", "unshare")
_missing = [program for program in _PROGRAMS if not Path(find(program)).is_absolute()]
needs_samba = pytest.mark.skipif(
    bool(_missing) or not may_unshare(),
    reason=f"not installed: {', '.join(_missing)}" if _missing else "namespaces need root",
)


@dataclass(frozen=True)
class Corp:
    """The domain.

    authority: the issuer of the domain controller's certificate.
    """

    dc: Machine
    host: Machine
    authority: Authority

    def administer(self, *commands: Sequence[str]) -> None:
        """Run commands of samba-tool in one process, because each start takes a second."""
        _administer(self.dc, commands)

    def wrong_passwords(self, user: str) -> int:
        """Return how many wrong passwords of a user the domain controller has counted."""
        shown = self.dc.run("samba-tool", "user", "show", user, "--attributes=badPwdCount")
        found = re.search(r"^badPwdCount: (\d+)$", shown, re.MULTILINE)
        return int(found[1]) if found else 0


def look_up(host: str, _port: int, _kind: socket.SocketKind) -> list[str]:
    """Resolve the name of the domain controller.

    The system's resolver would run in a thread, which is in another network.
    """
    if host != DC_NAME:
        raise socket.gaierror(socket.EAI_NONAME, "not known")
    return [DC_ADDRESS]


@contextmanager
def in_network(corp: Corp) -> Iterator[None]:
    """Move the test to the joined host until the block ends."""
    with corp.host.inside():
        yield


@contextmanager
def running_corp(directory: Path) -> Iterator[Corp]:
    """Yield the domain.

    directory: an empty directory.
    """
    authority = Authority("corp")
    for name in ("dc", "host"):
        (directory / name).mkdir()
    with (
        Machine(directory / "dc", _OWN, resolver="127.0.0.1") as dc,
        Machine(directory / "host", _OWN, resolver=DC_ADDRESS) as host,
    ):
        connect(dc, DC_ADDRESS, host, HOST_ADDRESS)
        _provision(dc, authority)
        _populate(dc)
        dc.start(dc.directory / "output", find("samba"), "--foreground", "--model=single", "--no-process-group")
        _join(host)
        yield Corp(dc, host, authority)


def _provision(dc: Machine, authority: Authority) -> None:
    (dc.directory / "lib" / "private").mkdir(mode=0o700)
    (dc.directory / "ca.pem").write_text(authority.pem)
    key = dc.directory / "key.pem"
    key.touch(0o600)
    key.write_bytes(authority.key_for(DC_NAME))
    options = {
        "server services": "s3fs, rpc, ldap, cldap, kdc, winbindd, dns",
        "dns forwarder": "none",
        "ntlm auth": "mschapv2-and-ntlmv2-only",
        "tls keyfile": str(key),
        "tls certfile": str(key),
        "tls cafile": str(dc.directory / "ca.pem"),
    }
    dc.run(
        "samba-tool", "domain", "provision", f"--realm={REALM}", f"--domain={NT_DOMAIN}", "--server-role=dc",
        "--dns-backend=SAMBA_INTERNAL", f"--host-name={DC_NAME.partition('.')[0]}", f"--host-ip={DC_ADDRESS}",
        f"--adminpass={ADMIN_PASSWORD}", *(f"--option={name}={value}" for name, value in options.items()),
    )  # fmt: skip


def _populate(dc: Machine) -> None:
    """Add the initial people, groups and computers."""
    must_change = {"must": ["--must-change-at-next-login"]}
    commands = [
        [
            "domain", "passwordsettings", "set", "--complexity=off", "--min-pwd-age=0",
            f"--account-lockout-threshold={THRESHOLD}", "--account-lockout-duration=30",
        ],
        *(["user", "create", user, password, *must_change.get(user, [])] for user, password in PEOPLE.items()),
        ["user", "disable", "off"],
        ["user", "setexpiry", "gone", "--days=-1"],
        ["group", "add", "staff"],
        ["group", "addmembers", "staff", ",".join(STAFF)],
        ["computer", "create", COMPUTER],
        ["user", "setpassword", f"{COMPUTER}$", f"--newpassword={COMPUTER_PASSWORD}"],
    ]  # fmt: skip
    _administer(dc, commands)


def _administer(dc: Machine, commands: Sequence[Sequence[str]]) -> None:
    dc.run("/usr/bin/python3", "-c", _BATCH, find("samba-tool"), json.dumps(commands))


def _join(host: Machine) -> None:
    """Join the domain as an admin does: run `net ads join`, then start winbindd."""
    (host.directory / "etc" / "smb.conf").write_text(_MEMBER)
    (host.directory / "lib" / "private").mkdir(mode=0o700)
    join = ("net", "ads", "join", "-U", f"Administrator%{ADMIN_PASSWORD}", "--no-dns-updates")
    _until(lambda: host.attempt(*join).returncode == 0)
    host.start(host.directory / "output", find("winbindd"), "--foreground", "--no-process-group")
    _until(lambda: host.attempt("wbinfo", "--check-secret").returncode == 0)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_S
    while not holds():
        assert time.monotonic() < deadline, "Samba did not become ready"
        time.sleep(0.2)
