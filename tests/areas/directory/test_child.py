"""The child process that parses an import file: its isolation and its limits."""

import os
from contextlib import chdir, suppress
from pathlib import Path

import pytest
import trio

from sallyport.areas.directory.imports.child import LIMITS, ChildLimits, PreparedCounts, prepare
from sallyport.base.errors import Invalid
from tests.areas import Areas
from tests.areas.directory.world import at_work, over, person, queue

PEOPLE = "".join(person(f"u{number}") for number in range(100))
LARGE = "dn: cn=g,dc=x\nobjectClass: groupOfNames\ncn: g\n" + "".join(f"member: uid={n},dc=x\n" for n in range(300_000))


async def prepared(folder: Path, ldif: str, limits: ChildLimits = LIMITS) -> PreparedCounts:
    """Prepare a text as an LDIF file."""
    source = folder / "source.ldif"
    source.write_text(ldif)
    return await prepare("ldif", source, folder / "target", (), limits)


async def test_the_current_directory_is_not_on_the_path(tmp_path: Path) -> None:
    """The child process does not import a module from the current directory."""
    (tmp_path / "sallyport").mkdir()
    for name in ("json.py", "structlog.py", "sallyport/__init__.py"):
        (tmp_path / name).write_text("raise SystemExit(3)\n")
    with chdir(tmp_path):
        assert await prepared(tmp_path, PEOPLE) == PreparedCounts(total=100, skipped=0)


async def test_the_environment_is_empty(tmp_path: Path) -> None:
    """The child process inherits no variable of the service's environment."""
    source = tmp_path / "source.ldif"
    os.mkfifo(source)
    environments = list[bytes]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepare, "ldif", source, tmp_path / "target", (), LIMITS)
        # The child process waits until the FIFO is opened for writing, so that the test can read its environment.
        file = await trio.to_thread.run_sync(source.open, "w")
        with file:
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(FileNotFoundError, ProcessLookupError):  # the process does not exist or has ended
                    if str(source).encode() in (process / "cmdline").read_bytes():
                        environments.append((process / "environ").read_bytes())
    assert [each for each in environments if each.replace(b"LC_CTYPE=C.UTF-8\0", b"")] == []
    assert len(environments) == 1


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        pytest.param(ChildLimits(cpu_s=1), "CPU time", id="CPU time"),
        pytest.param(ChildLimits(octets=96 << 20), "memory", id="memory"),
    ],
)
async def test_a_limit_ends_the_import(tmp_path: Path, limits: ChildLimits, message: str) -> None:
    """If a file needs more CPU time or memory than the limit, it is refused with a message that names the limit."""
    with pytest.raises(Invalid, match=message):
        await prepared(tmp_path, LARGE + "\n" + LARGE.replace("cn=g", "cn=h"), limits)
    assert [each.name for each in tmp_path.iterdir()] == ["source.ldif"]


async def test_a_job_fails_when_a_limit_is_hit(areas: Areas) -> None:
    """If the child process exceeds its memory limit, the import ends as FAILED and writes nothing."""
    areas.directory.jobs.limits = ChildLimits(octets=96 << 20)
    async with at_work(areas):
        job = await over(areas, await queue(areas, LARGE))
    assert (job.state, job.added) == ("FAILED", 0)
    assert "MiB of memory" in job.message
