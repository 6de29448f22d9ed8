"""An earlier program: its installation, which tests/deploy/test_upgrade.py upgrades, with its backup, its master key,
and what a test must know of it; and its Debian package, for tests/deploy/test_package.py. At present the program is
that of a commit, later that of the last tag.

python -m tests.deploy.earlier COMMIT    # makes it with the program of a commit
"""

import fcntl
import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyotp

from tests.deploy.distribution import ROOT, run
from tests.peers.isolated import CACHE
from tests.running_service import RunningService

FOLDER = ROOT / "tests" / "deploy" / "earlier_installation"
DATABASE, KEY, FACTS = FOLDER / "sallyport.db.xz", FOLDER / "master.key", FOLDER / "facts.json"
PASSWORD = "correct horse battery"
TENANT = ("--org", "1", "--tenant", "1")
DOMAIN = ("--domain", "default")
OBJECTS = (
    ("domain", "add", "corp", *TENANT, "--realm", "corp.example"),
    ("role", "set", "staff", *DOMAIN, "--reply", "Filter-Id=staff"),
    ("rule", "add", "printers", *DOMAIN, "--action", "allow", "--user", "printer", "--role", "staff"),
    ("bypass", "add", "02-00-00-00-00-01", *DOMAIN, "--name", "printer", "--vlan", "20"),
    ("instance", "add", "host", *DOMAIN),
    ("group", "add", "admins", *DOMAIN),
    ("policy", "add", "long", *TENANT, "--min-length", "12"),
    ("directory", "add", "people", *DOMAIN, "--kind", "ldif"),
    ("did", "create", "issuer", *DOMAIN),
)
"""Commands that make an object of each kind."""
PACKAGES = CACHE / "packages"


def program_of(commit: str, directory: Path) -> Path:
    """Export the program of a commit into a directory, and return the path of its command. It uses the packages of the
    tests. Raises CalledProcessError if there is no such commit.
    """
    export(commit, directory, "src", "dictionaries")
    program = directory / "sallyport"
    code = f"import sys; sys.path.insert(0, {str(directory / 'src')!r}); from sallyport.cli.main import main; main()"
    program.write_text(f"#!{sys.executable} -I\n{code}\n")
    program.chmod(0o755)
    return program


def package_of(commit: str) -> Path:
    """Return the path of the Debian package that `make deb` builds from a commit. It is built once and kept. Raises
    CalledProcessError if there is no such commit.
    """
    made = PACKAGES / f"{commit}.deb"
    PACKAGES.mkdir(parents=True, exist_ok=True)
    with (PACKAGES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=PACKAGES) as name:
                export(commit, Path(name))
                built = run("make", "--silent", "deb", cwd=Path(name)).splitlines()[-1]
                Path(name, built).rename(made)
    return made


def export(commit: str, directory: Path, *names: str) -> None:
    """Write files of a commit into a directory. names: the files and folders; none for all. Raises CalledProcessError
    if there is no such commit."""
    command = ["git", "archive", commit, *names]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(
        ["tar", "-x", "-C", directory], input=archive, check=True
    )  # tarfile has no filter before Python 3.11.4


def code_of(otpauth: str) -> str:
    """Return the code that an authenticator app shows now. otpauth: the URI of the seed."""
    (seed,) = parse_qs(urlsplit(otpauth).query)["secret"]
    return pyotp.TOTP(seed).now()


def fill(service: RunningService) -> dict[str, str]:
    """Give a running service an object of each kind, with logins, and return what a test must know of them."""

    def ran(*words: str, input: str = "") -> str:
        done = service.program(*words, input=input)
        assert done.returncode == 0, done
        return done.stdout.strip()

    secret = ran("client", "add", "here", "--address", "127.0.0.1", *TENANT, "--tag", "site=Berlin")
    token = ran("token", "create", *TENANT, "--name", "kept")
    ran("user", "add", "ann", *DOMAIN, "--password", "-", input=f"{PASSWORD}\n")
    ran("user", "add", "bob", *DOMAIN, "--password", "-", input=f"{PASSWORD}\n")
    otpauth = json.loads(ran("user", "totp", "ann", *DOMAIN, "--json"))["otpauth"]
    ran("user", "totp", "ann", *DOMAIN, "--code", code_of(otpauth))
    for words in OBJECTS:
        ran(*words)
    ran("admin", "add", "root", "--password", "-", input=f"{PASSWORD}\n")
    for name in ("ann", "bob", "eve"):
        with service.radius(secret) as client:
            client.login(name, PASSWORD, CALLING_STATION_ID=f"02-00-00-00-00-{name.encode()[0]:02x}".encode())
    ran("provider", "set", "default", "totp")
    ran("domain", "mode", "default", "enforce")
    return {"secret": secret, "token": token, "otpauth": otpauth}


def main() -> None:
    """Make the installation with the program of a commit."""
    commit = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        program = program_of(commit, Path(name))
        service = RunningService(Path(name, "service"), program=program)
        service.directory.mkdir()
        service.start()
        try:
            facts = {"commit": commit, **fill(service)}
            done = service.program("db", "backup", str(Path(name, "backup.db")))
            assert done.returncode == 0, done
            service.stop()
        finally:
            service.kill()
        FOLDER.mkdir(exist_ok=True)
        DATABASE.write_bytes(lzma.compress(Path(name, "backup.db").read_bytes(), preset=9))
        KEY.write_bytes((service.data_dir / "master.key").read_bytes())
        FACTS.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
