"""The Debian package of the agents alone. It is built once, and manages the accounts of a Debian that was booted with
systemd, on which the service of this source tree runs as well. The machine has only the declared dependencies of the
package, and no network except loopback.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.agent.templates import AGENTS
from tests.deploy.test_package import is_there, release, run, state
from tests.peers.booted import PACKAGES, BootedHost, needs_boot
from tests.peers.isolated import SUITE, base
from tests.peers.programs import needs

ROOT = Path(__file__).parents[2]
NAME = "sallyport-agent"
AGENT = AGENTS["endpoint"]
OVERRIDES = ROOT / f"src/sallyport/deploy/debian/agent/{NAME}.lintian-overrides"
DOMAIN = ("--domain", "default")
PLACES = (Path(sys.base_prefix), Path(sys.prefix), ROOT / "src", ROOT / "dictionaries")
"""The directories of the service of this source tree, which the machine has at the same paths."""
SERVICE = (
    *(f"PYTHONPATH={ROOT / 'src'}", "PYTHONDONTWRITEBYTECODE=1", "SALLYPORT_DATA_DIR=/var/lib/sallyport"),
    *("SALLYPORT_DISK_RESERVE_MIB=0", "SALLYPORT_HTTP_BIND=127.0.0.1:8080"),
)
PROGRAM = (sys.executable, "-c", "from sallyport.cli.main import main; main()")

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(release() != SUITE, reason=f"the package is built for the release of this system, not {SUITE}"),
    needs("dpkg-buildpackage", "dh_virtualenv", "lintian"),
    *needs_boot,
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the package, which `make deb-agent` builds in a copy of the source tree."""
    place = tmp_path_factory.mktemp("agent")
    left_out = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "sallyport-data")
    shutil.copytree(ROOT, place / "source", ignore=left_out)
    yield place / "source" / run("make", "--silent", "deb-agent", cwd=place / "source").splitlines()[-1]
    shutil.rmtree(place)


@pytest.fixture
def host(package: Path, tmp_path: Path) -> Iterator[BootedHost]:
    """Yield a clean Debian with the package in /srv, on which the service runs."""
    mounts = {"/srv": package.parent, **{str(each): each for each in PLACES}}
    with BootedHost(base(PACKAGES), tmp_path, mounts) as machine:
        variables = (f"--setenv={each}" for each in SERVICE)
        machine.run("systemd-run", "--quiet", "--unit=service-of-the-test", *variables, *PROGRAM, "serve")
        yield machine


def sallyport(host: BootedHost, *words: str, stdin: str = "") -> str:
    """Run a command of the service. A command waits for a service that is starting."""
    return host.run("env", *SERVICE, *PROGRAM, *words, stdin=stdin).stdout.strip()


def test_lintian_finds_no_error(package: Path) -> None:
    """lintian finds only tags that are overridden. A comment before each override gives the reason."""
    done = subprocess.run(["lintian", "--fail-on=error,warning", package], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(rf"(#.+\n{NAME}: .+\n)+", OVERRIDES.read_text(encoding="utf-8"))


def test_the_package_is_small(package: Path) -> None:
    """With all its Python packages, it has at most 15 MB, and installed 45 MB."""
    assert package.stat().st_size <= 15_000_000
    assert int(run("dpkg-deb", "--field", package, "Installed-Size")) * 1024 <= 45_000_000


def test_the_package_can_be_beside_that_of_the_service(package: Path) -> None:
    """Each file has the name of the package in its path, and the man pages are in another section than those of the
    service, such as sallyport-agent(1).
    """
    lines = run("dpkg-deb", "--contents", package).splitlines()
    files = [line.split()[5] for line in lines if not line.startswith("d")]
    assert files
    assert [path for path in files if NAME not in path or "/man1/" in path] == []


def test_the_package_manages_the_accounts_of_a_host(host: BootedHost, package: Path) -> None:
    """The endpoint agent enrols and makes the account of an assigned user. A removal stops the agent, and keeps the
    account and the agent's file. A purge deletes the file.
    """
    host.run("dpkg", "--install", f"/srv/{package.name}")
    sallyport(host, "user", "add", "ann", *DOMAIN, "--password", "-", stdin="correct-horse\n")
    sallyport(host, "instance", "add", "here", *DOMAIN)
    key = ("--org", "1", "--tenant", "1", "--instance", "here", "--service", "http://127.0.0.1:8080")
    text = sallyport(host, "agent", "key", "create", *DOMAIN, *key)
    host.run(NAME, "install", "endpoint", "--start", stdin=f"{text}\n")
    assert f"ExecStart=/usr/bin/{NAME} endpoint " in host.run("systemctl", "cat", AGENT.unit).stdout
    sallyport(host, "instance", "assign", "here", *DOMAIN, "--user", "ann")
    host.shell(
        f"for n in $(seq 500); do getent passwd ann && exit; sleep 0.2; done; journalctl -u {AGENT.unit}; exit 1"
    )
    assert json.loads(host.run(NAME, "status", "--json").stdout)["accounts"] == ["ann"]
    host.run("dpkg", "--remove", NAME)
    assert state(host, AGENT.unit, "ActiveState") == "inactive"
    assert [is_there(host, path) for path in (f"/opt/venvs/{NAME}", AGENT.unit_path)] == [False, False]
    assert host.run("getent", "passwd", "ann").returncode == 0
    assert is_there(host, AGENT.config)
    host.run("dpkg", "--purge", NAME)
    assert not is_there(host, AGENT.config)


def test_the_package_has_both_agents_and_their_pages(host: BootedHost, package: Path) -> None:
    """The directory agent has its packages. The man page and the scripts of the shells are installed."""
    host.run("dpkg", "--install", f"/srv/{package.name}")
    assert "--dry-run" in host.run(NAME, "directory", "--help").stdout
    assert is_there(host, f"/usr/share/man/man8/{NAME}.8.gz")
    script = f"/usr/share/bash-completion/completions/{NAME}"
    ask = f"COMP_WORDS=({NAME} inst); COMP_CWORD=1; _sallyport_agent_completion {NAME}; echo ${{COMPREPLY[*]}}"
    assert host.run("bash", "-c", f"source {script}; {ask}").stdout == "install\n"
