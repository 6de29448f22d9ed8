"""The distributions: the files in them, and the wheel in an environment of its own with each supported Python."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.deploy import distribution
from tests.deploy.distribution import ROOT, run, source_of, version_of
from tests.peers.programs import find

TEXTS = {"", ".html", ".md", ".py", ".service", ".sh", ".toml", ".yml"}
FOREIGN = re.compile(r"(pip|pipx|uv)\b.* install\b.*[\s'\"]sallyport(\[|[\s'\"=]|$)")
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")


def installed(version: str) -> Path | None:
    """Return the interpreter of a Python version, which is on the path or from pyenv. A pyenv shim may have no
    interpreter behind it.
    """
    for program in (Path(find(f"python{version}")), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
        if program.is_absolute():
            done = subprocess.run([program, "-c", "import ensurepip, venv"], capture_output=True, check=False)
            if done.returncode == 0:
                return program
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the source distribution of this source tree, and return the path of the wheel."""
    return distribution.build(tmp_path_factory.mktemp("dist"))


def test_the_distributions_are_complete(wheel: Path) -> None:
    """The wheel and the source distribution pass `twine check --strict`. They have all files, the name of the project
    and the command.
    """
    distribution.check_wheel(wheel)
    distribution.check_source(source_of(wheel))


def test_the_description_of_the_api_is_beside_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Its name and its text have the version of the wheel. That of an earlier build is removed."""
    (tmp_path / "sallyport-openapi-0.0.1.json").touch()
    version = distribution.version_of(wheel)
    path = distribution.release_description(tmp_path, wheel, json.dumps({"info": {"version": version}}).encode())
    assert [each.name for each in tmp_path.iterdir()] == [path.name] == [f"sallyport-openapi-{version}.json"]
    with pytest.raises(AssertionError):
        distribution.release_description(tmp_path, wheel, b'{"info": {"version": "0"}}')


def test_pip_takes_a_later_build_as_an_upgrade(wheel: Path, tmp_path: Path) -> None:
    """The installation of a later build replaces an earlier one of the same source version, and says its version."""
    later = distribution.build(tmp_path / "later", version_of(wheel).partition(".dev")[0] + ".dev999901010000")
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "own", cwd=tmp_path)
    pip = (tmp_path / "own/bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
    for each in (wheel, later):
        run(*pip, "--no-index", each, cwd=tmp_path)
        shown = run(tmp_path / "own/bin/python", "-m", "pip", "show", "sallyport-radius", cwd=tmp_path)
        assert f"Version: {version_of(each)}\n" in shown


def test_builds_of_two_commits_have_different_versions(tmp_path: Path) -> None:
    """The version of a build has the time of its commit; a release has the version of the package alone."""
    script = tmp_path / "src" / "sallyport" / "deploy" / "build-version"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "src/sallyport/deploy/build-version", script)
    (tmp_path / "src" / "sallyport" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.hooksPath=/dev/null")
    run(*git, "init", "--quiet", cwd=tmp_path)
    versions = []
    for minute in (1, 2):
        environ = os.environ | {"GIT_COMMITTER_DATE": f"2026-11-28T20:0{minute}:00+01:00"}
        run(*git, "add", "--all", cwd=tmp_path)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=tmp_path, env=environ, check=True)
        versions.append(run(script, cwd=tmp_path).strip())
    assert versions == ["1.2.3.dev202611281901", "1.2.3.dev202611281902"]
    run(*git, "tag", "-a", "-m", "x", "v1.2.3", cwd=tmp_path)
    assert run(script, cwd=tmp_path) == "1.2.3\n"


def test_newer_pythons_can_install_the_wheel() -> None:
    """The metadata only requires the oldest supported Python and sets no upper bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={SUPPORTED[0]}"


def test_no_text_installs_another_project() -> None:
    """The project `sallyport` on PyPI is another one, so each text installs the wheel by its path."""
    found = [path for folder in ("src", "docs", "tests") for path in (ROOT / folder).rglob("*")]
    texts = [path for path in (*found, *ROOT.glob("*.md")) if path.suffix in TEXTS and path.is_file()]
    lines = [line for path in texts for line in path.read_text(encoding="utf-8").splitlines()]
    installing = [line for line in lines if FOREIGN.search(line)]
    assert installing == []


@pytest.mark.system
def test_the_program_of_make_dist_runs_to_its_end(tmp_path: Path) -> None:
    """It prints the paths of both wheels, of the source distribution and of the description of the API. They are there,
    with one version."""
    printed = run(sys.executable, "-m", "tests.deploy.distribution", tmp_path, cwd=ROOT).splitlines()[-4:]
    assert {Path(line) for line in printed} == set(tmp_path.iterdir())
    names = [Path(line).name for line in printed]
    version = version_of(Path(names[0]))
    assert names[1:] == [
        f"sallyport_radius-{version}.tar.gz",
        f"sallyport_agent-{version}-py3-none-any.whl",
        f"sallyport-openapi-{version}.json",
    ]


@pytest.mark.system
@pytest.mark.parametrize("version", SUPPORTED)
def test_the_wheel_runs_under_each_supported_python(wheel: Path, version: str, tmp_path: Path) -> None:
    """With the locked versions and without the source tree, the service accepts a login and `sallyport demo --once`
    succeeds.
    """
    interpreter = installed(version)
    if interpreter is None:
        pytest.skip(f"Python {version} is not installed")
    program = distribution.install(wheel, interpreter, tmp_path / "own")
    python = program.with_name("python")
    assert run(python, "-c", "import sys; print(sys.version)", cwd=tmp_path).startswith(f"{version}.")
    where = run(python, "-c", "import sallyport; print(sallyport.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)
    (tmp_path / "service").mkdir()
    described = distribution.try_out(wheel, program, tmp_path / "service", tmp_path)
    assert described.name == f"sallyport-openapi-{distribution.version_of(wheel)}.json" and described.is_file()
    assert "MikroTik RouterOS" in run(program, "demo", "--once", cwd=tmp_path)
