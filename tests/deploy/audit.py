"""The program of `make audit`. It asks a database whether a locked version has a known vulnerability.

python -m tests.deploy.audit PIP_AUDIT    # the path of pip-audit

The exit status is 1 if a version has one. Where the database cannot be reached, it says so, and the exit status is 0.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.deploy.distribution import ROOT

LOCKS = (
    "requirements.lock",
    "requirements-postgres.lock",
    "requirements-otel.lock",
    "requirements-agent.lock",
    "tests/requirements.lock",
    "tests/deploy/requirements.lock",
    "tests/fuzz/requirements.lock",
)
LIMIT_S = 300


def audit(pip_audit: Path, lock: Path) -> tuple[int, list[str]]:
    """Check a lock file. Return the number of versions that the database knows, and a line for each vulnerability.

    Raises ConnectionError if the database cannot be reached.
    """
    command = (pip_audit, "--disable-pip", "--require-hashes", "--progress-spinner", "off", "-f", "json", "-r", lock)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if not done.stdout.startswith("{"):
        raise ConnectionError(done.stderr.strip().rpartition("\n")[2])
    found = json.loads(done.stdout)["dependencies"]
    known = [each for each in found if "skip_reason" not in each]
    lines = [f"{lock.name}: {_line(each, one)}" for each in known for one in each["vulns"]]
    return len(known), lines


def _line(package: dict[str, str], vulnerability: dict[str, Any]) -> str:
    corrected = ", ".join(vulnerability["fix_versions"]) or "no version"
    return f"{package['name']} {package['version']}: {vulnerability['id']}, corrected in {corrected}"


def main() -> int:
    """Check all lock files, and print the findings. Return the exit status."""
    failed = 0
    for name in LOCKS:
        try:
            known, lines = audit(Path(sys.argv[1]).absolute(), ROOT / name)
        except ConnectionError as error:
            known, lines = 0, [str(error)]
        else:
            failed |= bool(lines)
        print(*lines, sep="\n", end="\n" if lines else "")
        print(f"{name}: {known} versions checked" if known else f"{name}: NOT CHECKED, the database cannot be reached")
    return failed


if __name__ == "__main__":
    sys.exit(main())
