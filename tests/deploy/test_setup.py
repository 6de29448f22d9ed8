"""What `make demo`, `make test` and `make clean` do in a clone, and what they leave alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.earlier import export

ROOT = Path(__file__).parents[2]
SERVICE, TOOLS = "tests/setup python3 service", "tests/setup python3\n"
DEMO_MB = 140

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone without an environment. Its files are older than anything that make writes."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tests" / "peers").mkdir(parents=True)
    for name in ("tests/setup", "tests/requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    for path in (each for each in tmp_path.rglob("*") if each.is_file()):
        os.utime(path, (1, 1))
    return tmp_path


def plan(clone: Path, target: str) -> str:
    """Return the commands that make would run."""
    command = ["make", "--dry-run", "PYTHON=python3", target]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True).stdout


def done(clone: Path, target: str) -> None:
    """Write the files that the set-up of a target leaves, in their order."""
    (clone / ".venv").mkdir(exist_ok=True)
    for line in plan(clone, target).splitlines():
        if line.startswith("touch "):
            path = clone / line.removeprefix("touch ")
            path.touch()
            os.utime(path, (2, 2))


@needs_make
def test_the_demo_installs_what_the_service_takes(clone: Path) -> None:
    """In a fresh clone, the demo does not install the tools of the tests."""
    planned = plan(clone, "demo")
    assert SERVICE in planned and TOOLS not in planned


@needs_make
def test_the_tests_complete_the_environment_of_the_demo(clone: Path) -> None:
    """After the demo, `make test` installs only the tools; in a fresh clone, the service's packages before them."""
    planned = plan(clone, "test")
    assert 0 <= planned.index(SERVICE) < planned.index(TOOLS)
    done(clone, "demo")
    assert SERVICE not in plan(clone, "demo")
    planned = plan(clone, "test")
    assert SERVICE not in planned and TOOLS in planned


@needs_make
def test_the_demo_after_the_tests_installs_nothing(clone: Path) -> None:
    """After `make test`, neither target sets anything up."""
    done(clone, "test")
    for target in ("demo", "test"):
        assert "tests/setup" not in plan(clone, target)


@needs_make
@pytest.mark.parametrize(
    ("changed", "planned"),
    [
        ("requirements.lock", {"demo", "test"}),
        ("pyproject.toml", {"demo", "test"}),
        ("tests/setup", {"demo", "test"}),
        ("tests/requirements.lock", {"test"}),
    ],
)
def test_a_changed_pin_is_installed(clone: Path, changed: str, planned: set[str]) -> None:
    """After a change of what is pinned, the targets that use it set up again."""
    done(clone, "test")
    os.utime(clone / changed, (3, 3))
    assert {target for target in ("demo", "test") if "tests/setup" in plan(clone, target)} == planned


@needs_make
def test_clean_keeps_data(clone: Path) -> None:
    """`make clean` removes the environment. Data directories and settings stay, whatever they contain."""
    for name in (".venv", "sallyport-data", "build"):
        (clone / name).mkdir()
    (clone / "sallyport-data" / "master.key").write_text("1 key\n")
    (clone / "sallyport.toml").write_text("")
    subprocess.run(["make", "clean"], cwd=clone, capture_output=True, check=True)
    assert (clone / "sallyport-data" / "master.key").exists() and (clone / "sallyport.toml").exists()
    assert not (clone / ".venv").exists() and not (clone / "build").exists()


@pytest.mark.parametrize("name", ["sallyport.toml", "sallyport-data/master.key", ".venv/bin/python"])
def test_git_ignores_what_an_installation_adds(name: str) -> None:
    """Settings and data in the clone are not offered for a commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    assert subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT, check=False).returncode == 0


def test_a_failed_installation_shows_what_pip_says(tmp_path: Path) -> None:
    """The set-up ends with an error, and shows the messages of pip, also after a set-up that has succeeded."""
    (tmp_path / "requirements.lock").write_text(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    environ = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    for _ in range(2):
        failed = subprocess.run(
            [ROOT / "tests" / "setup", sys.executable, "service"],
            cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert failed.returncode == 1
        assert "No matching distribution found for no-such-package" in failed.stderr
        (tmp_path / ".venv" / "setup.status").write_text("0\n", encoding="utf-8")  # of the set-up before


@pytest.mark.system
@needs_make
def test_the_demo_of_a_fresh_clone(tmp_path: Path) -> None:
    """The demo of a fresh clone takes less than 140 MB, shows its progress, and works."""
    export("HEAD", tmp_path)
    shown = subprocess.run(["make", "demo", "ONCE=1"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "packages of requirements.lock into .venv" in shown and " fetched, the last one: " in shown
    assert "Where to go on" in shown
    files = [each.lstat().st_size for each in (tmp_path / ".venv").rglob("*") if each.is_file()]
    assert sum(files) < DEMO_MB * 1_000_000
    planned = plan(tmp_path, "test")
    assert SERVICE not in planned and TOOLS in planned


def test_a_package_build_names_what_is_missing(tmp_path: Path) -> None:
    """`make deb` prints one apt-get line with all packages that the build needs and the system does not have."""
    query = tmp_path / "dpkg-query"
    query.write_text('#!/bin/sh\n[ "$3" != debhelper ] || echo installed\n')
    query.chmod(0o755)
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = ROOT / "src" / "sallyport" / "deploy" / "debian" / "build-package"
    failed = subprocess.run([script], env=environ, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    line = failed.stderr.partition("apt-get install ")[2].split()
    assert {"dpkg-dev", "dh-virtualenv", "python3-venv"} <= set(line)
    assert "debhelper" not in line
