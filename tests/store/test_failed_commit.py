"""A commit that the disk has refused stays undone, also if the process is killed later."""

import errno
import os
import subprocess
import sys
from pathlib import Path

from tests.areas import running_store
from tests.soak.programs import SYNCS, Shim, compile_shim
from tests.store.conftest import names

PROGRAM = """
import sys
from functools import partial
from pathlib import Path

import trio

from sallyport.base.errors import StoreError
from tests.areas import running_store
from tests.store.conftest import put


async def main():
    async with running_store(Path(sys.argv[1])) as store:
        print("open", file=sys.stderr)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            name = line.strip()
            try:
                await store.write(partial(put, name=name) if name else lambda tx: None)
                print("written", file=sys.stderr)
            except StoreError:
                print("refused", file=sys.stderr)


trio.run(main)
"""


async def test_a_refused_commit_does_not_come_back(tmp_path: Path) -> None:
    """The disk refuses to synchronize a commit, whose pages are complete in the log. Then a write that changes nothing
    succeeds, and the process is killed. The refused commit is not in the store when it is opened again."""
    data = tmp_path / "data"
    data.mkdir()
    shim = Shim(data)
    environ = {**os.environ, **shim.environ, "LD_PRELOAD": str(compile_shim(tmp_path))}
    command = [sys.executable, "-c", PROGRAM, str(data / "s.db")]
    with subprocess.Popen(
        command, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None

        def told(line: str = "") -> str:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            return process.stderr.readline().strip()

        assert process.stderr.readline() == "open\n"
        assert told("kept") == "written"
        shim.fail(SYNCS, errno.EIO, 1)
        assert told("refused") == "refused"
        shim.fail(0, 0, 1)
        while told() != "written":
            pass
        process.kill()
    async with running_store(data / "s.db") as store:
        assert await store.read(names) == ["kept"]
