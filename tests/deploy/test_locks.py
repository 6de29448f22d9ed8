"""The lock file of an installation is complete and has the same versions as the tests."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pinned(name: str) -> dict[str, str]:
    """Return each package of a lock file with its version and hashes."""
    text = re.sub(r"\\\n\s*", "", (ROOT / name).read_text(encoding="utf-8"))
    return dict(line.split("==", 1) for line in text.splitlines())


def test_an_installation_has_the_versions_of_the_tests() -> None:
    """Each package of requirements.lock is in tests/requirements.lock, with the same version and hashes."""
    ours, theirs = pinned("requirements.lock"), pinned("tests/requirements.lock")
    assert ours.items() <= theirs.items()
    assert "pytest" in theirs.keys() - ours.keys()


def test_no_older_version_is_allowed_than_was_run() -> None:
    """The lower bound of each dependency is the beginning of the locked version, which the tests run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = pinned("requirements.lock") | pinned("requirements-postgres.lock") | pinned("requirements-otel.lock")
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    for each in (*project["dependencies"], *extras):
        (found,) = re.findall(r"^([a-z0-9-]+)(?:\[.*\])?>=([0-9.]+)", each)
        name, bound = found
        version = locked[name].partition(" ")[0]
        assert f"{version}.".startswith(f"{bound}."), each


def test_the_lock_file_has_every_dependency() -> None:
    """The lock file pins each dependency, and each package that builds the wheel, with a hash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["build"]]
    lock = pinned("requirements.lock")
    for each in named:
        (name,) = re.findall(r"^[a-z0-9-]+", each)
        assert "--hash=sha256:" in lock[name]
    for extra, needed in project["project"]["optional-dependencies"].items():
        for each in needed:
            (name,) = re.findall(r"^[a-z0-9-]+", each)
            assert "--hash=sha256:" in pinned(f"requirements-{extra}.lock")[name]
