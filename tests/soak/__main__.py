"""Run a campaign: `python -m tests.soak --hours 1 --seed 7 --engine sqlite`.

It runs itself again in a mount namespace, where the disk of the nodes is a small file system in memory, and with the
library of `shim.c` preloaded, which all processes inherit.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from sallyport.cli.benchmark.machine import describe
from tests.bench.radload import compile_radload
from tests.soak.disk import DISK_MIB
from tests.soak.programs import compile_shim, compiled
from tests.soak.report import Figures, table
from tests.soak.runner import Plan, Tools, run

DISK: Final = "SOAK_DISK"
"""The environment variable of the inner process: the root of the small disk."""


@click.command()
@click.option("--hours", type=click.FloatRange(0.001, 200), default=1.0, show_default=True, help="Duration.")
@click.option("--seed", type=int, default=None, help="Seed of the schedule. Default: a new one.")
@click.option("--engine", type=click.Choice(["sqlite", "postgres"]), default="sqlite", show_default=True)
@click.option("--installation", type=int, default=0, help="First installation, to repeat a finding of a later one.")
def main(hours: float, seed: int | None, engine: str, installation: int) -> None:
    """Break an installation under load, and check what its clients receive."""
    if DISK not in os.environ:
        sys.exit(_run_inside())
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets its background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    seed = int.from_bytes(os.urandom(3)) if seed is None else seed
    disk = Path(os.environ[DISK])
    repeat = f"make soak HOURS={hours:g} SEED={seed} ENGINE={engine}"
    print(f"{repeat}\n{describe(disk.parent)}", flush=True)
    began = time.monotonic()
    tools = Tools(compiled("relay.c", disk.parent / "relay"), compile_radload(disk.parent), disk.parent, disk)
    plan, figures = Plan(seed, engine, began + hours * 3600, installation), Figures()
    try:
        run(plan, tools, figures, lambda line: print(line, flush=True))
    finally:  # an interrupted campaign has figures too
        print(f"\n{table(figures, time.monotonic() - began, seed, engine)}", flush=True)
    if figures.findings:
        print("\n".join(["", "Findings:", *figures.findings, "", f"To repeat them: {repeat}"]))
        sys.exit(1)


def _run_inside() -> int:
    """Run the same command in a namespace with a small disk. Return its exit status."""
    if os.getuid() != 0:
        sys.exit("make soak: only root may mount the small disk")
    with TemporaryDirectory(prefix="sallyport-soak-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "disk").mkdir()
        shim = compile_shim(directory)
        mount = f"mount -t tmpfs -o size={DISK_MIB}m none {directory}/disk"
        inner = [sys.executable, "-m", "tests.soak", *sys.argv[1:]]
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mount} && exec "$@"', "sh", *inner]
        environ = {**os.environ, DISK: str(directory / "disk"), "LD_PRELOAD": str(shim)}
        return subprocess.run(command, env=environ, check=False).returncode


if __name__ == "__main__":
    main()
