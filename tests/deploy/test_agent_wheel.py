"""The wheel of the agents alone: it has all that the agents import, and needs no other packages than it declares."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import distribution, version
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement

from sallyport import __version__
from tests.deploy.distribution import ROOT, build_agent, run
from tests.deploy.test_locks import pinned

PROJECT = tomllib.loads((ROOT / "pyproject-agent.toml").read_text(encoding="utf-8"))["project"]
EXTRA = PROJECT["optional-dependencies"]["directory"]
PROGRAMS = tuple(f"sallyport.agent.{name}" for name in ("program", "cli", "endpoint.cli", "directory.cli"))
NOT_USED = {"httpx": "outgoing.fields checks the URLs of providers with it, which the agents do not have"}
"""Packages that a module of the agents imports in a function that they do not call."""


def needed(roots: Iterable[str]) -> set[str]:
    """Return the modules that programs import, directly or not, also in functions: ours, and packages of others."""
    graph = grimp.build_graph("sallyport", include_external_packages=True, exclude_type_checking_imports=True)
    found = set(roots)
    for each in roots:
        found |= graph.find_upstream_modules(each)
    return found


def names(requirements: Iterable[str]) -> set[str]:
    """Return the names of the packages of requirements, with those that they need themselves."""
    found, todo = set[str](), [Requirement(each) for each in requirements]
    while todo:
        each = todo.pop()
        name = re.sub(r"[-_.]+", "-", each.name).lower()
        if name not in found and (each.marker is None or each.marker.evaluate({"extra": ""})):
            found.add(name)
            todo += [Requirement(one) for one in distribution(name).requires or ()]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, and return its path."""
    return build_agent(tmp_path_factory.mktemp("agent"), "9.9.9")


def environment(wheel: Path, directory: Path, packages: Iterable[str]) -> Path:
    """Make an environment with the wheel and these packages of the test, and return the path of its command."""
    run(sys.executable, "-m", "venv", "--without-pip", directory, cwd=ROOT)
    (site,) = directory.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for name in packages:
        tops = {each.parts[0] for each in distribution(name).files or () if each.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    program = directory / "bin" / "sallyport-agent"
    program.write_text(f"#!{directory}/bin/python\nfrom sallyport.agent.program import main\nmain()\n")
    program.chmod(0o755)
    return program


def test_the_wheel_has_what_the_agents_import(wheel: Path) -> None:
    """Each module that an agent imports is in the wheel, and each module of others is a dependency. The wheel has no
    module of the service that needs more.
    """
    with zipfile.ZipFile(wheel) as archive:
        files = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in archive.namelist()}
        metadata = archive.read("sallyport_agent-9.9.9.dist-info/METADATA").decode()
    found = needed(PROGRAMS)
    assert {each for each in found if each.startswith("sallyport")} <= files
    others = {each for each in found if not each.startswith("sallyport")} - sys.stdlib_module_names
    declared = {re.findall(r"^[a-z-]+", each)[0].replace("-", "_") for each in (*PROJECT["dependencies"], *EXTRA)}
    assert others - NOT_USED.keys() == declared
    assert "Provides-Extra: directory\n" in metadata
    assert not [each for each in files if each.startswith(("sallyport.cli", "sallyport.web", "sallyport.store"))]


def test_both_distributions_need_the_same_versions() -> None:
    """A dependency of both has the same bound, and the lock of the agents has the versions of the tests."""
    theirs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    ours = {*PROJECT["dependencies"], *EXTRA}
    assert ours <= set(theirs)
    lock = pinned("requirements-agent.lock")
    assert lock.items() <= pinned("tests/requirements.lock").items()
    assert names(ours) | {"hatchling"} <= lock.keys()


def test_the_endpoint_agent_needs_two_packages(wheel: Path, tmp_path: Path) -> None:
    """With the dependencies without the extra, the endpoint agent is installed. The unit starts this program. The
    command `directory` names the extra.
    """
    program = environment(wheel, tmp_path / "own", names(PROJECT["dependencies"]))
    assert run(program, "--version", cwd=tmp_path) == "sallyport-agent, version 9.9.9\n"
    text = b'service = "https://sallyport.example.org"\nenrolment_key = "spk_x"\n\n[endpoint]\n'
    command = [program, "install", "endpoint", "--prefix", tmp_path / "host"]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    unit = tmp_path / "host/etc/systemd/system/sallyport-agent-endpoint.service"
    assert f"ExecStart={program} endpoint --config /etc/sallyport/endpoint-agent.toml\n" in unit.read_text()
    assert "--dry-run" in run(program, "endpoint", "--help", cwd=tmp_path)
    refused = subprocess.run([program, "directory", "--help"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == (
        "sallyport-agent: the directory agent needs more packages: install the wheel as 'WHEEL[directory]'\n"
    )


def test_the_directory_agent_needs_its_extra(wheel: Path, tmp_path: Path) -> None:
    """With the packages of the extra, the directory agent reads its file and tries to reach the directory."""
    program = environment(wheel, tmp_path / "own", names((*PROJECT["dependencies"], *EXTRA)))
    path = tmp_path / "agent.toml"
    path.write_text(
        'service = "https://sallyport.example.org"\nenrolment_key = "spk_x"\n'
        f'state_dir = "{tmp_path}/state"\n[directory]\ndomain = 1\nname = "corp"\n'
        'servers = ["ldap://127.0.0.1:1"]\nbase_dn = "dc=example"\nbind_dn = ""\nbind_secret = ""\n'
    )
    path.chmod(0o600)
    command = [program, "directory", "--config", path, "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "127.0.0.1 port 1: no connection" in done.stderr


def test_an_unknown_command_is_wrong_usage(wheel: Path, tmp_path: Path) -> None:
    """The exit statuses are those of `sallyport`. The message names the nearest command."""
    program = environment(wheel, tmp_path / "own", names(PROJECT["dependencies"]))
    done = subprocess.run([program, "stats"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith('sallyport-agent: There is no command "stats". Did you mean "status"?\n')


def test_both_distributions_have_one_version() -> None:
    """The version comes from the same file. An installed service has that of the tree."""
    assert PROJECT["dynamic"] == ["version"]
    assert version("sallyport-radius").partition(".dev")[0] == __version__
