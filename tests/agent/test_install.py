"""`sallyport agent install` and `uninstall`: the files and units in a prefix, and the start of the agent."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sallyport.agent.endpoint.accounts import MANAGED_GROUP
from sallyport.agent.endpoint.memory import ManagedAccount, MemoryFile
from sallyport.agent.templates import AGENTS
from tests.agent.endpoint.host import bare_host, needs_shadow

PROGRAM = Path(sys.executable).with_name("sallyport")
ENDPOINT = 'service = "https://sallyport.example.org"\nenrolment_key = "spk_x"\n\n[endpoint]\n'
DIRECTORY = ENDPOINT.replace("[endpoint]", "[directory]")


def run(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PROGRAM, "agent", *arguments], input=stdin, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("agent", "text"), [("endpoint", ENDPOINT), ("directory", DIRECTORY)])
def test_install_and_uninstall(tmp_path: Path, agent: str, text: str) -> None:
    """Only its owner may read the configuration file, and the unit names it. A second install keeps the file, and
    uninstall with --purge leaves no file.
    """
    where = AGENTS[agent]
    done = run("install", agent, "--prefix", str(tmp_path), stdin=text)
    assert done.returncode == 0, done.stderr
    config, unit = (tmp_path / str(path).lstrip("/") for path in (where.config, where.unit_path))
    assert config.stat().st_mode & 0o777 == 0o600
    assert f"ExecStart={PROGRAM} agent {agent} --config {where.config}\n" in unit.read_text()
    before = config.read_text()
    assert 'enrolment_key = "spk_x"' in before
    assert run("install", agent, "--prefix", str(tmp_path)).returncode == 0
    assert config.read_text() == before
    assert run("uninstall", agent, "--purge", "--prefix", str(tmp_path)).returncode == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@needs_shadow
def test_nothing_is_removed_if_an_account_cannot_be_locked(tmp_path: Path) -> None:
    """usermod fails without /etc/shadow. The unit, the configuration file and the state stay, so that uninstall can be
    repeated.
    """
    host = bare_host(tmp_path)
    config, unit = (host.path(str(path)) for path in (AGENTS["endpoint"].config, AGENTS["endpoint"].unit_path))
    assert run("install", "endpoint", "--prefix", str(host.prefix), stdin=ENDPOINT).returncode == 0
    memory = host.path("/var/lib/sallyport-agent/endpoint-memory.json")
    memory.parent.mkdir()
    MemoryFile(memory).keep(ManagedAccount("bob", uid=1500))
    with host.path("/etc/group").open("a") as group:
        group.write(f"{MANAGED_GROUP}:x:200:bob\n")
    shadow = host.path("/etc/shadow")
    shadow.rename(tmp_path / "shadow")
    uninstall = ("uninstall", "endpoint", "--lock-accounts", "--purge", "--prefix", str(host.prefix))
    done = run(*uninstall)
    assert done.returncode == 1
    assert "lock bob: usermod: " in done.stdout
    assert "nothing was removed" in done.stderr
    assert "is removed" not in done.stdout
    assert config.exists()
    assert unit.exists()
    assert memory.exists()

    (tmp_path / "shadow").rename(shadow)
    done = run(*uninstall)
    assert (done.returncode, done.stderr) == (0, "")
    assert "lock bob: done\n" in done.stdout
    assert not any(path.exists() for path in (config, unit, memory))


@pytest.mark.parametrize("text", ["", "no = toml = file", DIRECTORY, 'service = "x"\nspoon = 1\n'])
def test_an_invalid_file_is_not_installed(tmp_path: Path, text: str) -> None:
    """A file that the agent would refuse is not installed."""
    done = run("install", "endpoint", "--prefix", str(tmp_path), stdin=text)
    assert done.returncode == 1
    assert "spk_x" not in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("agent", ["endpoint", "directory"])
def test_systemd_accepts_the_units(tmp_path: Path, agent: str) -> None:
    """systemd-analyze accepts each line of the units."""
    path = tmp_path / AGENTS[agent].unit
    path.write_text(AGENTS[agent].text(PROGRAM))
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
    own = [line for line in (done.stderr + done.stdout).splitlines() if path.name in line]
    assert own == []


def test_the_agent_imports_little() -> None:
    """The agent starts without the modules of a rotation and without pydantic, httpx and trio, which would take most of
    its 300 ms and 40 MB.
    """
    script = (
        "import sys, sallyport.cli.main, sallyport.agent.endpoint.cli, sallyport.agent.endpoint.daemon,"
        " sallyport.agent.endpoint.identity, sallyport.agent.endpoint.wiring, sallyport.agent.service;"
        " from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey;"
        " print(*sorted({'pydantic', 'httpx', 'trio', 'structlog', 'sqlite3', 'sallyport.areas.passwords',"
        " 'ctypes', 'importlib.metadata'} & sys.modules.keys()));"
        " print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    modules, peak_kib = done.stdout.split("\n")[:2]
    assert modules == ""
    assert int(peak_kib) < 40_000
