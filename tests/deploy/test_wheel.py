"""The wheel, installed in an environment of its own under each supported Python, does the main job."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.programs import find

ROOT = Path(__file__).parents[2]
LIMIT_S = 400
SUPPORTED = ("3.11", "3.12", "3.13")
pytestmark = pytest.mark.system


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def installed(version: str) -> Path | None:
    """The interpreter of a Python version, from the path or from pyenv. A shim of pyenv may have none to start."""
    for program in (Path(find(f"python{version}")), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
        if program.is_absolute():
            done = subprocess.run([program, "-c", "import ensurepip, venv"], capture_output=True, check=False)
            if done.returncode == 0:
                return program
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source tree."""
    directory = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", directory, ROOT, cwd=directory)
    (built,) = directory.glob("sallyport-*.whl")
    return built


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_wheel_runs_the_demo(wheel: Path, version: str, tmp_path: Path) -> None:
    """With the locked versions, and nothing of the source tree, `sallyport demo --once` ends with success."""
    interpreter = installed(version)
    if interpreter is None:
        pytest.skip(f"Python {version} is not installed")
    run(interpreter, "-m", "venv", "own", cwd=tmp_path)
    locked = [line.split()[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line]
    (tmp_path / "versions.txt").write_text("\n".join(locked))
    own = tmp_path / "own" / "bin"
    pip = (own / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--constraint", "versions.txt", wheel, cwd=tmp_path)
    assert run(own / "python", "-c", "import sys; print(sys.version)", cwd=tmp_path).startswith(f"{version}.")
    where = run(own / "python", "-c", "import sallyport; print(sallyport.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)
    assert "MikroTik RouterOS" in run(own / "sallyport", "demo", "--once", cwd=tmp_path)
