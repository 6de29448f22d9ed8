"""The processor time and the memory of a server: of its process and of all its descendants (proc(5))."""

import os
from contextlib import suppress
from pathlib import Path


def process_tree(process_id: int) -> list[int]:
    """Return the ids of the process and all its descendants, so that the work of children is counted too."""
    found = [process_id]
    for task in Path(f"/proc/{process_id}/task").glob("*/children"):
        for child in task.read_text().split():
            found += process_tree(int(child))
    return found


def cpu_s(process_id: int) -> float:
    """Return the processor time of a process and its descendants in seconds."""
    ticks = 0
    for each in process_tree(process_id):
        with suppress(OSError):  # the process has ended
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(process_id: int) -> float:
    """Return the memory of a process and its descendants in MiB. Pages that several of them share count once (Pss)."""
    total = 0
    for each in process_tree(process_id):
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def machine_busy_s() -> float:
    """Return the processor time of all programs since the machine was started, in seconds."""
    names = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _io, interrupts, soft, *_ = map(int, names[1:])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")
