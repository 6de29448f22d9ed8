"""The processor time and the memory of a server: of its process and of all its descendants (proc(5))."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def process_tree(process_id: int) -> list[int]:
    """Return the ids of the process and all its descendants, so that the work of children is counted too."""
    found = [process_id]
    with suppress(OSError):  # a process or thread has ended
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
        with suppress(OSError):  # the process has ended
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def machine_busy_s() -> float:
    """Return the processor time of all programs since the machine was started, in seconds."""
    names = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _io, interrupts, soft, *_ = map(int, names[1:])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def usable_cores() -> float:
    """Return the cores that this process may use: those of its affinity, or the quota of its control groups.

    A container of a quota sees all cores of its host (cgroups(7), `cpu.max` of version 2).
    """
    return min([len(os.sched_getaffinity(0)), *_quotas(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))])


def _quotas(root: Path, own: Path) -> Iterator[float]:
    """Yield the quota of each control group around this process, in cores."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            if not line.startswith("0::/"):
                continue
            group = root / line.removeprefix("0::/")
            for each in (group, *group.parents):
                if each.is_relative_to(root) and (each / "cpu.max").exists():
                    quota, period = (each / "cpu.max").read_text().split()
                    if quota != "max":
                        yield int(quota) / int(period)


def parent_process(process_id: int, name: str) -> int | None:
    """Return the parent of a process. Return None if the process has another name, or is not on this machine."""
    with suppress(OSError):
        head, _, rest = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")
        if head.partition("(")[2] == name:
            return int(rest.split()[1])
    return None
