"""The machine that takes the measurements: its processor, memory, operating system and file system."""

import os
import platform
import sqlite3
from collections.abc import Mapping
from pathlib import Path


def facts(directory: Path) -> Mapping[str, str]:
    """Return the names and values that describe the machine, and the file system of the servers' databases."""
    return {
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{_memory_mib() / 1024:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "databases on": filesystem(directory),
    }


def describe(directory: Path) -> str:
    """Return the same as Markdown lines."""
    return "\n".join(f"- {name}: {value}" for name, value in facts(directory).items())


def filesystem(directory: Path) -> str:
    """Return the type of a directory's file system. On tmpfs nothing is written to a disk, so a sync costs nothing."""
    resolved, best, kind = directory.resolve(), "", "unknown"
    for line in Path("/proc/mounts").read_text(errors="replace").splitlines():
        _, mounted, candidate, *_ = line.split(" ")
        if resolved.is_relative_to(mounted) and len(mounted) >= len(best):
            best, kind = mounted, candidate
    return f"{kind} (no disk: commits cost nothing here)" if kind == "tmpfs" else kind


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _memory_mib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 20)
