"""Fuzz the targets one after the other, and print executions, coverage and findings."""

import argparse
import re
import subprocess
import sys
from hashlib import sha1
from pathlib import Path

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import CPU_S, TARGETS

FOLDER = Path("build/fuzz")
MEMORY_MIB = 2048


def main() -> int:
    """Fuzz the named targets, or all. Return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []], help="a target; default: all")
    parser.add_argument("--minutes", type=float, default=10, help="time of all targets together; default: 10")
    parser.add_argument("--seed", type=int, default=1, help="start of the random numbers; default: 1")
    given = parser.parse_args()
    names = given.target or [*TARGETS]
    found = [_fuzz(name, given.minutes * 60 / len(names), given.seed) for name in names]
    return int(any(found))


def _fuzz(name: str, seconds: float, seed: int) -> bool:
    """Fuzz a target, and print its line. Return whether it has a finding."""
    corpus, target = FOLDER / name, TARGETS[name]
    corpus.mkdir(parents=True, exist_ok=True)
    for each in seeds(name):
        Path(corpus, sha1(each, usedforsecurity=False).hexdigest()).write_bytes(each)
    options = {
        "max_total_time": max(int(seconds), 1),
        "max_len": target.most,
        "seed": seed,
        "timeout": int(CPU_S * 60),  # of the clock; the target itself limits the CPU time
        "rss_limit_mb": MEMORY_MIB,
        "artifact_prefix": f"{FOLDER}/{name}-",
    }
    log = FOLDER / f"{name}.log"
    with log.open("w") as errors:
        status = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.fuzz.child",
                name,
                *(f"-{key}={value}" for key, value in options.items()),
                corpus,
            ],
            stderr=errors,
            stdout=errors,
            check=False,
        ).returncode
    runs, coverage = figures(log.read_text(errors="replace"))
    result = f"FINDING: see {log}" if status else "no finding"
    inputs = len([*corpus.iterdir()])
    print(f"{name}: {runs} executions, {coverage} edges, {inputs} inputs, {seconds / 60:.1f} min: {result}", flush=True)
    return bool(status)


def figures(log: str) -> tuple[int, int]:
    """Return the number of executions, and the number of covered edges, from the output of libFuzzer."""
    runs = re.findall(r"^(?:Done |#)(\d+)", log, re.MULTILINE)
    coverage = re.findall(r"cov: (\d+)", log)
    return int(runs[-1]) if runs else 0, int(coverage[-1]) if coverage else 0


if __name__ == "__main__":
    sys.exit(main())
