"""systemd units and the container file: sound, and with no more rights than the service needs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "src" / "sallyport" / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
EXPOSURE = 3.0
"""What `systemd-analyze security` may find at most, of 10; a unit without hardening has 9.2."""

verifies = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def in_place(unit: Path, directory: Path) -> Path:
    """The unit with programs that are here: what it starts is not installed on this machine."""
    text = re.sub(r"(?m)^(ExecStart=)\S+", r"\1/bin/true", unit.read_text(encoding="utf-8"))
    text = re.sub(r"(?m)^(User|Group)=.*\n", "", text)
    copy = directory / unit.name
    copy.write_text(text, encoding="utf-8")
    return copy


@verifies
@pytest.mark.peer
def test_the_units_are_sound(tmp_path: Path) -> None:
    """`systemd-analyze verify` knows every directive and value."""
    files = [in_place(unit, tmp_path) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", *files],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    ours = [line for line in done.stderr.splitlines() if any(unit.name in line for unit in UNITS)]
    assert not ours, done.stderr


@verifies
@pytest.mark.peer
def test_the_service_has_few_rights(tmp_path: Path) -> None:
    """`systemd-analyze security` finds little that an intruder could use."""
    unit = DEPLOY / "systemd" / "sallyport.service"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) <= EXPOSURE, done.stdout


def test_the_watchdog_and_the_stop_fit_the_service() -> None:
    """It notifies, is watched, is reloaded by the signal that it takes, and may take its time to stop."""
    text = (DEPLOY / "systemd" / "sallyport.service").read_text(encoding="utf-8")
    for line in ("Type=notify", "WatchdogSec=30", "ExecReload=/bin/kill -HUP $MAINPID", "TimeoutStopSec=15"):
        assert re.search(rf"(?m)^{re.escape(line)}$", text), line


def test_what_the_container_copies_is_there() -> None:
    """Each path that COPY names is in the repository."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    for names in re.findall(r"(?m)^COPY (?!--from)(.+) /build/\S*$", text):
        for name in names.split():
            assert (ROOT / name).exists(), name
