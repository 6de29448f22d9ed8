"""The program of `make dist`. It builds the wheel and the source distribution, checks both, and tests a login with the
installed wheel. It also builds the wheel of the agents alone, from the same source with the same version, and writes
the description of the API. The version of a build is that of `build-version`, so that pip takes a later build as an
upgrade.

python -m tests.deploy.distribution [DIRECTORY]    # default: dist/; earlier distributions in it are deleted
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from sallyport.deploy.grafana import FOLDERS
from tests.running_service import RunningService

ROOT = Path(__file__).parents[2]
LIMIT_S = 400
PARTS = ("src", "dictionaries", "grafana", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore")
"""The files of the repository from which the distributions are built."""
PASSWORD = "correct horse battery"


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def build(directory: Path, version: str = "") -> Path:
    """Build the source distribution, and build the wheel from it. version: by default, that of `build-version`.

    Return the path of the wheel. Older files of the project are removed.
    """
    for old in directory.glob("sallyport_radius-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as name:
        tree = copied(Path(name), version or run(ROOT / "src/sallyport/deploy/build-version", cwd=ROOT).strip())
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, tree, cwd=tree)
    (wheel,) = directory.glob("sallyport_radius-*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source_of(wheel), cwd=ROOT)
    return wheel


def build_agent(directory: Path, version: str) -> Path:
    """Build the wheel of the agents alone, and return its path. Older wheels of it are removed."""
    for old in directory.glob("sallyport_agent-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as name:
        tree = copied(Path(name), version)
        shutil.copy(ROOT / "pyproject-agent.toml", tree / "pyproject.toml")
        run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", directory, tree, cwd=tree)
    (wheel,) = directory.glob("sallyport_agent-*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, cwd=ROOT)
    return wheel


def copied(directory: Path, version: str) -> Path:
    """Copy the files of the distributions, and set their version. Return the copy."""
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, directory)
    code = directory / "src" / "sallyport" / "__init__.py"
    code.write_text(re.sub('__version__ = ".*"', f'__version__ = "{version}"', code.read_text(encoding="utf-8")))
    return directory


def version_of(wheel: Path) -> str:
    """Return the version of a wheel."""
    return wheel.name.split("-")[1]


def source_of(wheel: Path) -> Path:
    """Return the path of the source distribution that was built with a wheel."""
    return wheel.with_name(f"sallyport_radius-{version_of(wheel)}.tar.gz")


def expected() -> set[str]:
    """Return the files that the wheel must contain in addition to its metadata: those of the package, the
    dictionaries, and the files of `sallyport grafana export`.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    excluded = [ROOT / name for name in project["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]]
    package = {path for path in (ROOT / "src" / "sallyport").rglob("*") if path.is_file()}
    package = {path for path in package if not any(path.is_relative_to(each) for each in excluded)}
    names = {str(path.relative_to(ROOT / "src")) for path in package if path.suffix != ".pyc"}
    outside = [*(ROOT / "dictionaries").iterdir()]
    for folder in FOLDERS:
        outside += [path for path in (ROOT / "grafana" / folder).rglob("*") if path.is_file()]
    return names | {f"sallyport/{path.relative_to(ROOT)}" for path in outside}


def check_wheel(wheel: Path) -> None:
    """Assert that the wheel has exactly the files of the package, the command, the license, and the metadata of the
    project.
    """
    about = f"sallyport_radius-{version_of(wheel)}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"{about}/METADATA").decode().partition("\n\n")[0].splitlines()
        commands = archive.read(f"{about}/entry_points.txt").decode().split("\n")
    assert {name for name in names if not name.startswith(f"{about}/")} == expected()
    assert f"{about}/licenses/LICENSE" in names
    assert commands[:2] == ["[console_scripts]", "sallyport = sallyport.cli.main:main"]
    wanted = {
        "Name: sallyport-radius",
        f"Version: {version_of(wheel)}",
        "Requires-Python: >=3.11",
        "Provides-Extra: postgres",
        "Provides-Extra: otel",
    }
    assert wanted <= set(metadata), metadata


def check_source(archive: Path) -> None:
    """Assert that the source distribution has all sources of the wheel, and no file that git ignores."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    wanted = {f"src/{name}" for name in expected() if (ROOT / "src" / name).exists()}
    assert wanted | {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "dictionaries/dictionary"} <= names
    assert {name.partition("/")[0] for name in names} <= {
        "src", "dictionaries", "grafana", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore",
        "PKG-INFO",
    }  # fmt: skip


def install(wheel: Path, interpreter: Path, directory: Path) -> Path:
    """Install the wheel into an empty environment with the versions of requirements.lock. Return the path of its
    command.
    """
    run(interpreter, "-m", "venv", directory, cwd=directory.parent)
    pip = (directory / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--require-hashes", "-r", ROOT / "requirements.lock", cwd=directory)
    run(*pip, "install", "--quiet", "--no-deps", wheel, cwd=directory)
    run(*pip, "check", cwd=directory)
    return directory / "bin" / "sallyport"


def log_in(program: Path, directory: Path) -> bytes:
    """Run the service with a program, and log in over RADIUS. Return the description of its API. directory: an empty
    directory."""
    service = RunningService(directory, program=program)
    service.start()
    try:
        address = ("--address", "127.0.0.1", "--org", "1", "--tenant", "1")
        client = service.program("client", "add", "here", *address)
        service.program("user", "add", "alice", "--domain", "default", "--password", "-", input=PASSWORD + "\n")
        login = ("--secret", client.stdout.strip(), "--user", "alice", "--password", PASSWORD)
        done = service.program("check", "radius", f"127.0.0.1:{service.ports.auth}", *login)
        assert (done.returncode, "Access-Accept" in done.stdout) == (0, True), done
        described = service.request("GET", "/openapi.json").content
        service.stop()
        return described
    finally:
        service.kill()


def try_out(wheel: Path, program: Path, work: Path, directory: Path) -> Path:
    """Log in at a service of the installed program, and write its description of the API into a directory. Return the
    path of the description. work: an empty directory for the service."""
    return release_description(directory, wheel, log_in(program, work))


def release_description(directory: Path, wheel: Path, octets: bytes) -> Path:
    """Write the description of the API beside the distributions, and return its path. Older ones are removed."""
    version = version_of(wheel)
    assert json.loads(octets)["info"]["version"] == version
    for old in directory.glob("sallyport-openapi-*.json"):
        old.unlink()
    path = directory / f"sallyport-openapi-{version}.json"
    path.write_bytes(octets)
    return path


def main() -> None:
    """Build, check, install and test the distributions."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").absolute()
    print("building the wheel and the source distribution, and testing them: about a minute", flush=True)
    wheel = build(directory)
    check_wheel(wheel)
    check_source(source_of(wheel))
    agent = build_agent(directory, version_of(wheel))
    with tempfile.TemporaryDirectory() as name:
        program = install(wheel, Path(sys.executable), Path(name, "own"))
        Path(name, "service").mkdir()
        openapi = try_out(wheel, program, Path(name, "service"), directory)
    print(f"{wheel}\n{source_of(wheel)}\n{agent}\n{openapi}")


if __name__ == "__main__":
    main()
