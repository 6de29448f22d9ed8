"""The image of the container file. buildah builds it on a Debian from debootstrap, and it is tested with a login. The
test needs no image registry. At run time it needs no network except loopback.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.test_container import environment, probe
from tests.peers.isolated import base
from tests.peers.namespace import Machine, may_unshare
from tests.peers.programs import needs

ROOT = Path(__file__).parents[2]
BUILD_S = 400
READY_S = 60
USER = 10001
pytestmark = [
    pytest.mark.system,
    needs("buildah", "debootstrap"),
    pytest.mark.skipif(not may_unshare(), reason="namespaces need root"),
]


class Builder:
    """buildah with a store of its own, without a daemon."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        places = ("--root", str(directory / "store"), "--runroot", str(directory / "run"))
        self.program = ("buildah", *places, "--storage-driver", "overlay")

    def run(self, *arguments: str) -> str:
        """Run a command of buildah, assert that it succeeds, and return its output."""
        command = (*self.program, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=BUILD_S, check=False)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout.strip()

    def in_container(self, container: str, *options: str) -> tuple[str, ...]:
        """Return the first words of a command line that runs a program in a container, as `docker compose exec`
        does.
        """
        return (*self.program, "run", "--isolation", "chroot", *options, container, "--")


def authorities(directory: Path) -> list[str]:
    """Return the mounts by which pip in the build uses the same certificate authorities as pip on this machine."""
    bundle = os.environ.get("PIP_CERT", os.environ.get("SSL_CERT_FILE", ""))
    if not bundle:
        return []
    (directory / "pip.conf").write_text("[global]\ncert = /run/authorities.crt\n")
    return [f"--volume={bundle}:/run/authorities.crt:ro", f"--volume={directory / 'pip.conf'}:/etc/pip.conf:ro"]


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """Yield a builder that has already built the image."""
    directory = tmp_path_factory.mktemp("image")
    one = Builder(directory)
    try:
        scratch = one.run("from", "scratch")
        one.run("add", "--quiet", scratch, str(base("")), "/")
        one.run("commit", "--quiet", "--rm", scratch, "base")
        file = ("--file", "src/sallyport/deploy/Containerfile", "--build-arg", "BASE=localhost/base")
        kind = ("--isolation", "chroot", "--layers=false", "--format", "docker")
        one.run("build", *kind, *file, *authorities(directory), "--tag", "sallyport", ".")
        yield one
    finally:
        subprocess.run([*one.program, "rm", "--all"], capture_output=True, check=False)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def name(builder: Builder) -> str:
    """Return the name of a container of the image."""
    return builder.run("from", "localhost/sallyport")


@pytest.fixture
def container(builder: Builder, name: str, tmp_path: Path) -> Iterator[tuple[Machine, tuple[str, ...]]]:
    """Yield the machine on which the image's service runs, and the first words of a command line that runs in its
    container.
    """
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    os.chown(data, USER, USER)
    inside = builder.in_container(name, f"--volume={data}:{environment()['SALLYPORT_DATA_DIR']}")
    configured = json.loads(builder.run("inspect", "--type", "image", "localhost/sallyport"))["OCIv1"]["config"]
    command = (*configured["Entrypoint"], *configured["Cmd"])
    with Machine(tmp_path, {}, resolver="127.0.0.1") as machine:
        machine.start(tmp_path / "log", *inside, *command)
        deadline = time.monotonic() + READY_S
        while b'"event": "ready"' not in (tmp_path / "log").read_bytes():
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        yield machine, inside


def first_command() -> list[str]:
    """Return the first command that the documentation of the container gives to an admin, for a client on loopback."""
    text = (ROOT / "docs" / "install" / "container.md").read_text(encoding="utf-8")
    found = re.search(r"docker compose exec sallyport (sallyport client add .+?) >", text)
    assert found is not None
    return found[1].replace("192.0.2.10", "127.0.0.1").split()


def test_a_service_in_the_image_accepts_a_login(container: tuple[Machine, tuple[str, ...]]) -> None:
    """The documented first command adds a RADIUS client. The health check succeeds, the service runs as its own user,
    and the libraries of PostgreSQL and OpenTelemetry are installed."""
    machine, inside = container
    secret = machine.run(*inside, *first_command()).strip()
    machine.run(*inside, "sh", "-c", "echo correct-horse | sallyport user add ann --domain default --password -")
    login = ("--secret", secret, "--user", "ann", "--password", "correct-horse")
    assert "Access-Accept" in machine.run(*inside, "sallyport", "check", "radius", "127.0.0.1:1812", *login)
    machine.run(*inside, *probe())
    assert machine.run(*inside, "id", "-u").strip() == str(USER)
    machine.run(*inside, "/opt/sallyport/bin/python", "-c", "import psycopg; assert psycopg.pq.__impl__ == 'binary'")
    machine.run(*inside, "/opt/sallyport/bin/python", "-c", "import sallyport.outgoing.otlp")


def test_the_image_has_a_health_check_and_no_compiler(builder: Builder, name: str) -> None:
    """The image has a health check. It contains neither a compiler nor a build backend."""
    described = json.loads(builder.run("inspect", "--type", "image", "localhost/sallyport"))
    assert described["Docker"]["config"]["Healthcheck"]["Test"] == ["CMD", *probe()]
    listed = "ls /usr/bin /opt/sallyport/lib/python3*/site-packages"
    names = subprocess.run(
        [*builder.in_container(name), "sh", "-c", listed], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "psycopg" in names
    assert not [each for each in names if each in ("hatchling", "setuptools") or "gcc" in each]
