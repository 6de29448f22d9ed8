"""The program of `make audit`. It asks a database whether a locked version has a known vulnerability.

python -m tests.deploy.audit PIP_AUDIT    # the path of pip-audit

The exit status is 1 if a version has one, or if pip-audit fails. If the database cannot be reached, the output
names the locks that are not checked, and the exit status is 0.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
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
UNREACHABLE = re.compile(
    r"requests\.exceptions\.(?:ConnectionError|ProxyError|\w*Timeout|HTTPError: 5\d\d)|Could not connect to \w+'s vuln"
)
"""How pip-audit ends if there is no connection, or if the server of the database fails."""


def audit(pip_audit: Path, lock: Path) -> tuple[int, list[str]]:
    """Check a lock file. Return the number of versions that the database knows, and a line for each vulnerability.

    Raises ConnectionError if the database cannot be reached, and RuntimeError if pip-audit fails.
    """
    command = (pip_audit, "--disable-pip", "--require-hashes", "--progress-spinner", "off", "-f", "json", "-r", lock)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ConnectionError(f"pip-audit has not ended after {LIMIT_S} s") from error
    if not done.stdout.startswith("{"):
        last = done.stderr.strip().rpartition("\n")[2]
        raise (ConnectionError if UNREACHABLE.search(done.stderr) else RuntimeError)(last)
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
        result = "NOT CHECKED, the database cannot be reached"
        try:
            known, lines = audit(Path(sys.argv[1]).absolute(), ROOT / name)
        except ConnectionError as error:
            lines = [str(error)]
        except RuntimeError as error:
            failed, lines, result = 1, [str(error)], "NOT CHECKED, pip-audit has failed"
        else:
            failed |= bool(lines)
            result = f"{known} versions checked" if known else result
        print(*lines, f"{name}: {result}", sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
