"""The installation of an earlier program, which tests/deploy/test_upgrade.py upgrades: its backup, its master key, and
what a test must know of it. At present the program is that of a commit, later that of the last tag.

python -m tests.deploy.earlier COMMIT    # makes it with the program of a commit
"""

import io
import json
import lzma
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyotp

from tests.deploy.distribution import ROOT
from tests.running_service import RunningService

FOLDER = ROOT / "tests" / "deploy" / "earlier_installation"
DATABASE, KEY, FACTS = FOLDER / "sallyport.db.xz", FOLDER / "master.key", FOLDER / "facts.json"
PASSWORD = "correct horse battery"
TENANT = ("--org", "1", "--tenant", "1")
DOMAIN = ("--domain", "default")


def program_of(commit: str, directory: Path) -> Path:
    """Export the program of a commit into a directory, and return the path of its command. It uses the packages of the
    tests. Raises CalledProcessError if there is no such commit.
    """
    archive = subprocess.run(
        ["git", "archive", commit, "src", "dictionaries"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(directory, filter="data")
    program = directory / "sallyport"
    code = f"import sys; sys.path.insert(0, {str(directory / 'src')!r}); from sallyport.cli.main import main; main()"
    program.write_text(f"#!{sys.executable} -I\n{code}\n")
    program.chmod(0o755)
    return program


def code_of(otpauth: str) -> str:
    """Return the code that an authenticator app shows now. otpauth: the URI of the seed."""
    (seed,) = parse_qs(urlsplit(otpauth).query)["secret"]
    return pyotp.TOTP(seed).now()


def fill(service: RunningService) -> dict[str, str]:
    """Give a running service an object of each kind, with logins, and return what a test must know of them."""

    def run(*words: str, input: str = "") -> str:
        done = service.program(*words, input=input)
        assert done.returncode == 0, done
        return done.stdout.strip()

    secret = run("client", "add", "here", "--address", "127.0.0.1", *TENANT, "--tag", "site=Berlin")
    token = run("token", "create", *TENANT, "--name", "kept")
    run("user", "add", "ann", *DOMAIN, "--password", "-", input=f"{PASSWORD}\n")
    run("user", "add", "bob", *DOMAIN, "--password", "-", input=f"{PASSWORD}\n")
    otpauth = json.loads(run("user", "totp", "ann", *DOMAIN, "--json"))["otpauth"]
    run("user", "totp", "ann", *DOMAIN, "--code", code_of(otpauth))
    run("domain", "add", "corp", *TENANT, "--realm", "corp.example")
    run("role", "set", "staff", *DOMAIN, "--reply", "Filter-Id=staff")
    run("rule", "add", "printers", *DOMAIN, "--action", "allow", "--user", "printer", "--role", "staff")
    run("bypass", "add", "02-00-00-00-00-01", *DOMAIN, "--name", "printer", "--vlan", "20")
    run("instance", "add", "host", *DOMAIN)
    run("group", "add", "admins", *DOMAIN)
    run("policy", "add", "long", *TENANT, "--min-length", "12")
    run("directory", "add", "people", *DOMAIN, "--kind", "ldif")
    run("did", "create", "issuer", *DOMAIN)
    run("admin", "add", "root", "--password", "-", input=f"{PASSWORD}\n")
    for name in ("ann", "bob", "eve"):
        with service.radius(secret) as client:
            client.login(name, PASSWORD, CALLING_STATION_ID=f"02-00-00-00-00-{name.encode()[0]:02x}".encode())
    run("provider", "set", "default", "totp")
    run("domain", "mode", "default", "enforce")
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
