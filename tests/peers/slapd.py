"""OpenLDAP's slapd as the directory of a domain: a process on loopback, with its configuration in a directory.

    with slapd(tmp_path) as directory:
        directory.url, directory.secure_url        ldap://127.0.0.1:PORT, ldaps://localhost:PORT
        directory.binds("uid=ann,ou=people,...")   how many binds it received

It has the overlays ppolicy and memberof, its own CA (`authority`, PEM), StartTLS, the service account `SERVICE`, and
the people of `PEOPLE` below `ou=people,ou=staff,BASE`.
"""

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.peers.authority import Authority
from tests.peers.programs import find
from tests.ports import free_port

BASE = "dc=example,dc=com"
STAFF = f"ou=people,ou=staff,{BASE}"
SERVICE, SERVICE_PASSWORD = f"cn=sallyport,{BASE}", "service pässword"
ROOT, ROOT_PASSWORD = f"cn=root,{BASE}", "root"
PEOPLE = {
    "ann": "hello",
    "bob": "builder123456",
    "zoë": "pässwörd ünd mehr €",
    "o'neil (jr)*": "parentheses",
    "back\\slash": "a b c d",
    "comma": "sesame",
    "lou": "hello",
    "pia": "hello",
    "eve": "hello",
}
SIZE_LIMIT = 100
_READY_S = 90.0
_MODULES = Path("/usr/lib/ldap")
_SCHEMAS = Path("/etc/ldap/schema")


class Slapd:
    """A slapd with StartTLS, and with LDAPS at `secure_url`.

    directory: an empty directory. in_all: `size.prtotal`, the maximum number of entries in all pages of a search. page:
    `size.pr`, the maximum page size. A search without pages returns at most SIZE_LIMIT entries.
    """

    def __init__(
        self, directory: Path, authority: Authority, in_all: str = "unlimited", page: str = "unlimited"
    ) -> None:
        self.directory = directory
        self._in_all = in_all
        self._page = page
        self.authority = authority
        self.port, self.secure_port = free_port(), free_port()
        self.url = f"ldap://127.0.0.1:{self.port}"
        self.secure_url = f"ldaps://localhost:{self.secure_port}"
        self._log = directory / "log"
        self._process: subprocess.Popen[bytes] | None = None
        (directory / "data").mkdir()
        (directory / "key.pem").write_bytes(authority.key_for("localhost", "127.0.0.1"))
        (directory / "authority.pem").write_text(authority.pem)
        (directory / "slapd.conf").write_text(self._configuration())

    def _configuration(self) -> str:
        schemas = "".join(f"include {_SCHEMAS}/{name}.schema\n" for name in ("core", "cosine", "inetorgperson", "nis"))
        modules = "".join(f"moduleload {name}\n" for name in ("back_mdb", "ppolicy", "memberof"))
        key = self.directory / "key.pem"
        return f"""{schemas}modulepath {_MODULES}
{modules}sizelimit size.soft={SIZE_LIMIT} size.hard={SIZE_LIMIT} size.prtotal={self._in_all} size.pr={self._page}
pidfile {self.directory}/pid
TLSCACertificateFile {self.directory}/authority.pem
TLSCertificateFile {key}
TLSCertificateKeyFile {key}
database mdb
maxsize 1073741824
directory {self.directory}/data
suffix "{BASE}"
rootdn "{ROOT}"
rootpw {ROOT_PASSWORD}
access to attrs=userPassword by anonymous auth by * none
access to * by dn.base="{SERVICE}" read by self read by * none
overlay memberof
overlay ppolicy
ppolicy_default "cn=policy,{BASE}"
ppolicy_use_lockout
"""

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        urls = f"{self.url} ldaps://127.0.0.1:{self.secure_port}"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [find("slapd"), "-f", self.directory / "slapd.conf", "-h", urls, "-d", "stats"], stdout=log, stderr=log
            )
        deadline = time.monotonic() + _READY_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.secure_port), 1):
                return
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def kill(self) -> None:
        """End the server as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def stop(self) -> None:
        """Stop the server if it is running."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def log(self) -> str:
        """Return the log, one line for each operation."""
        return self._log.read_text(errors="replace")

    def binds(self, dn: str) -> int:
        """Return the number of binds with that DN.

        dn: the DN in ASCII, as in the log.
        """
        return len(re.findall(rf'BIND dn="{re.escape(dn)}" method=128', self.log()))

    def add(self, ldif: str) -> None:
        """Add, change or remove entries. The entries are given as LDIF for ldapmodify."""
        subprocess.run(
            [find("ldapmodify"), "-a", "-x", "-H", self.url, "-D", ROOT, "-w", ROOT_PASSWORD],
            input=ldif.encode(),
            check=True,
            capture_output=True,
            timeout=30,
        )

    def change(self, dn: str, *lines: str) -> None:
        """Change one entry, given as the lines of an LDIF change."""
        self.add("\n".join((f"dn: {dn}", "changetype: modify", *lines, "")))

    def attribute(self, dn: str, name: str) -> list[str]:
        """Return the values of an attribute."""
        command = [find("ldapsearch"), "-x", "-LLL", "-o", "ldif-wrap=no", "-H", self.url, "-D", ROOT]
        done = subprocess.run(
            [*command, "-w", ROOT_PASSWORD, "-b", dn, "-s", "base", "(objectClass=*)", name],
            check=True, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        return re.findall(rf"^{name}: (.*)$", done.stdout, re.MULTILINE)

    def populate(self) -> None:
        """Add the first entries."""
        self.add(_TREE)
        self.add("\n".join(_person(name, password) for name, password in PEOPLE.items()))
        self.add(_GROUPS)


def dn_of(name: str) -> str:
    """Return the entry of a person whose name needs no escapes."""
    return f"uid={name},{STAFF}"


def _person(name: str, password: str) -> str:
    escaped = "".join(f"\\{each}" if each in '\\,+"<>;#' else each for each in name)
    comma = "Comma\\, the" if name == "comma" else escaped
    dn = f"cn={comma},{STAFF}" if name == "comma" else f"uid={escaped},{STAFF}"
    return f"""dn: {dn}
objectClass: inetOrgPerson
uid: {name}
cn: {"Comma, the" if name == "comma" else name}
sn: {name}
userPassword: {password}
"""


_TREE = f"""dn: {BASE}
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=staff,{BASE}
objectClass: organizationalUnit
ou: staff

dn: {STAFF}
objectClass: organizationalUnit
ou: people

dn: ou=elsewhere,{BASE}
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:1/{BASE}

dn: {SERVICE}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: sallyport
userPassword: {SERVICE_PASSWORD}

dn: cn=policy,{BASE}
objectClass: organizationalRole
objectClass: pwdPolicy
cn: policy
pwdAttribute: userPassword
pwdLockout: TRUE
pwdMaxFailure: 3
pwdLockoutDuration: 0
pwdMustChange: TRUE
pwdFailureCountInterval: 0

dn: cn=short,{BASE}
objectClass: organizationalRole
objectClass: pwdPolicy
cn: short
pwdAttribute: userPassword
pwdMaxAge: 1
"""
_GROUPS = f"""dn: cn=vpn users,{BASE}
objectClass: groupOfNames
cn: vpn users
member: {dn_of("ann")}
member: {dn_of("zoë")}

dn: cn=admins\\, all,{BASE}
objectClass: groupOfNames
cn: admins, all
member: {dn_of("ann")}
"""


@contextmanager
def slapd(
    directory: Path, authority: Authority | None = None, in_all: str = "unlimited", page: str = "unlimited"
) -> Iterator[Slapd]:
    """Yield a server with people and groups.

    directory: an empty directory.
    """
    server = Slapd(directory, authority or Authority("The directory's CA"), in_all, page)
    try:
        server.start()
        server.populate()
        yield server
    finally:
        server.stop()
