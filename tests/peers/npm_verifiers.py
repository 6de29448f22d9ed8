"""Verifiers from npm: where their packages are, and how a test asks them.

`tests/peers/install` puts the packages of `npm/package-lock.json` into a cache of the user, and checks each package by
its digest in the lock file. No script of a package is run.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.peers.programs import find

HERE = Path(__file__).parent / "npm"
_LOCK = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:16]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sallyport" / f"npm-{_LOCK}"
MODULES = CACHE / "node_modules"

needs_npm = pytest.mark.skipif(
    not (Path(find("node")).is_absolute() and (MODULES / "did-jwt-vc").is_dir()),
    reason="node, or the packages of tests/peers/npm, are not installed",
)

AXE = MODULES / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core of tests/peers/npm is not installed")


def ask(directory: Path, questions: Sequence[Mapping[str, object]]) -> list[object]:
    """Return the answer of verify.mjs to each question: True, or the reason of the refusal."""
    script = directory / "verify.mjs"
    script.write_bytes((HERE / "verify.mjs").read_bytes())
    (directory / "node_modules").symlink_to(MODULES)
    done = subprocess.run(
        [find("node"), str(script)],
        check=False,
        input=json.dumps(list(questions)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers: list[object] = json.loads(done.stdout)
    assert len(answers) == len(questions)
    return answers
