"""The distributions are reproducible, `make sbom` lists what they contain, and `make audit` checks the locks."""

import itertools
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.deploy import audit, distribution, sbom
from tests.deploy.distribution import ROOT, source_of
from tests.deploy.test_agent_wheel import EXTRA, PROJECT, names
from tests.deploy.test_locks import pinned


def run_audit(tmp_path: Path, output: str, status: int) -> subprocess.CompletedProcess[str]:
    """Run `make audit` with a pip-audit that answers the same for each lock."""
    program = tmp_path / "pip-audit"
    stream = "" if output.startswith("{") else " >&2"
    program.write_text(f"#!/bin/sh\ncat <<'END'{stream}\n{output}\nEND\nexit {status}\n")
    program.chmod(0o755)
    command = (sys.executable, "-m", "tests.deploy.audit", program)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def dependencies(*found: Mapping[str, object]) -> str:
    """Return an answer of pip-audit."""
    return json.dumps({"dependencies": found, "fixes": []})


def test_a_vulnerability_fails_the_audit(tmp_path: Path) -> None:
    """The lock, the version, the number and the corrected version are printed."""
    vulnerability = {"id": "PYSEC-2026-1", "fix_versions": ["1.2"], "aliases": [], "description": ""}
    done = run_audit(tmp_path, dependencies({"name": "h11", "version": "1.1", "vulns": [vulnerability]}), 1)
    assert done.returncode == 1
    assert done.stdout.startswith("requirements.lock: h11 1.1: PYSEC-2026-1, corrected in 1.2\n")
    assert done.stdout.count(": 1 versions checked\n") == len(audit.LOCKS)


@pytest.mark.parametrize(
    ("output", "status"),
    [
        (dependencies({"name": "h11", "skip_reason": "Dependency not found on PyPI"}), 0),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pypi.org', port=443): ...", 1),
        ("requests.exceptions.ProxyError: HTTPSConnectionPool(host='pypi.org', port=443): ...", 1),
        ("requests.exceptions.HTTPError: 503 Server Error\npip_audit._service.interface.ServiceError", 1),
        ("ERROR:pip_audit._cli:Could not connect to PyPI's vulnerability feed\nERROR:pip_audit._cli:Tip: ...", 1),
    ],
)
def test_an_audit_without_a_database_says_so(tmp_path: Path, output: str, status: int) -> None:
    """A database that cannot be reached, or that knows no version, fails nothing."""
    done = run_audit(tmp_path, output, status)
    assert done.returncode == 0
    assert done.stdout.count("NOT CHECKED, the database cannot be reached\n") == len(audit.LOCKS)


@pytest.mark.parametrize(
    "output",
    [
        "ERROR:pip_audit._cli:invalid requirements input: requirements.lock",
        "pip-audit: error: unrecognized arguments: --disable-pip",
        "Traceback (most recent call last):\nKeyError: 'vulns'",
    ],
)
def test_a_failure_of_pip_audit_fails_the_audit(tmp_path: Path, output: str) -> None:
    """A wrong lock, a wrong option or a crash does not look as if there were no network."""
    done = run_audit(tmp_path, output, 1)
    assert done.returncode == 1
    assert done.stdout.count("NOT CHECKED, pip-audit has failed\n") == len(audit.LOCKS)
    assert output.rpartition("\n")[2] in done.stdout


def test_a_clean_lock_passes_the_audit(tmp_path: Path) -> None:
    """Versions without a vulnerability are counted."""
    found = ({"name": "h11", "version": "1.1", "vulns": []}, {"name": "odd", "skip_reason": "not found"})
    done = run_audit(tmp_path, dependencies(*found), 0)
    assert (done.returncode, done.stdout) == (0, "".join(f"{lock}: 1 versions checked\n" for lock in audit.LOCKS))


@pytest.mark.system
def test_two_builds_are_equal(tmp_path: Path) -> None:
    """The wheel and the source distribution of one version have the same octets in each build."""
    builds = [distribution.build(tmp_path / name, "9.9.9") for name in ("one", "two")]
    assert builds[0].read_bytes() == builds[1].read_bytes()
    sources = [source_of(each) for each in builds]
    assert sources[0].read_bytes() == sources[1].read_bytes()


@pytest.mark.system
def test_the_documents_list_what_is_shipped(tmp_path: Path) -> None:
    """`make sbom` lists each package of the locks, and for the package and the image those of Debian as well."""
    environ = os.environ | {"MAKEFLAGS": ""}
    done = subprocess.run(["make", "build/supply/.ready"], cwd=ROOT, env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    documents = sbom.write(tmp_path, ROOT / "build" / "supply" / "bin" / "cyclonedx-py")
    wheel, deb, image, agent = (json.loads(path.read_text(encoding="utf-8")) for path in documents)
    shipped = pinned("requirements.lock").keys() - set(sbom.builders())
    extras = pinned("requirements-postgres.lock").keys() | pinned("requirements-otel.lock").keys()
    of_agent = pinned("requirements-agent.lock").keys() - set(sbom.builders(sbom.AGENT))
    for document, subject, wanted in (
        (wheel, "sallyport-radius", shipped),
        (deb, "sallyport-radius", shipped | extras | {"python3", "passwd"}),
        (image, "sallyport-radius", shipped | extras | {"python3", "ca-certificates", "docker.io/library/debian"}),
        (agent, "sallyport-agent", of_agent | {"python3", "passwd"}),
    ):
        assert document["bomFormat"] == "CycloneDX"
        assert document["metadata"]["component"]["name"] == subject
        found = {each["name"].lower().replace("_", "-").replace(".", "-") for each in document["components"]}
        expected = {name.replace(".", "-") for name in wanted}
        assert expected - found == set()
        assert found - expected <= {"pip"}


def test_nothing_that_only_builds_is_shipped() -> None:
    """The rules of both Debian packages and the Containerfile remove each package of the locks that no shipped package
    needs, and no other: sqlite-utils needs pluggy and pip, the agents neither.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ours, build = project["project"], project["dependency-groups"]["build"]
    needed = names([*ours["dependencies"], *itertools.chain(*ours["optional-dependencies"].values())])
    assert set(sbom.builders()) - {"setuptools"} == names(build) - needed
    assert set(sbom.builders(sbom.AGENT)) - {"setuptools", "pip"} == names(build) - names(
        (*PROJECT["dependencies"], *EXTRA)
    )
    image = (ROOT / "src/sallyport/deploy/Containerfile").read_text(encoding="utf-8")
    assert f"pip uninstall --quiet --yes {' '.join(sbom.builders())} " in image
