"""Fuzz the targets one after the other, and print executions, coverage and findings."""

import argparse
import ctypes
import os
import re
import sys
import traceback
from collections.abc import Sequence
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
    status = _in_child(log, name, [*(f"-{key}={value}" for key, value in options.items()), str(corpus)])
    runs, coverage = figures(log.read_text(errors="replace"))
    result = f"FINDING: see {log}" if status else "no finding"
    inputs = len([*corpus.iterdir()])
    print(f"{name}: {runs} executions, {coverage} edges, {inputs} inputs, {seconds / 60:.1f} min: {result}", flush=True)
    return bool(status)


def _in_child(log: Path, name: str, arguments: Sequence[str]) -> int:
    """Fuzz a target in a forked process, which has the imported tests. Return its exit status."""
    sys.stdout.flush()
    process_id = os.fork()
    if process_id == 0:
        try:
            with log.open("w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            from tests.fuzz.child import fuzz  # it needs atheris

            fuzz(name, arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            ctypes.CDLL(None).exit(1)  # libFuzzer writes the input of a finding when the process ends
    return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])


def figures(log: str) -> tuple[int, int]:
    """Return the number of executions, and the number of covered edges, from the output of libFuzzer."""
    runs = re.findall(r"^(?:Done |#)(\d+)", log, re.MULTILINE)
    coverage = re.findall(r"cov: (\d+)", log)
    return int(runs[-1]) if runs else 0, int(coverage[-1]) if coverage else 0


if __name__ == "__main__":
    sys.exit(main())
