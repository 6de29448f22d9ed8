"""The end of an account's processes, tested with real processes that hide or respawn. Their uids have no account."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sallyport.agent.endpoint.accounts import read, subordinate_uids
from sallyport.agent.endpoint.processes import Ids, Processes
from tests.agent.endpoint.host import bare_host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
UID = 61_234
SUBORDINATE = range(2_100_000_000, 2_100_065_536)
IDS = Ids(UID, (SUBORDINATE,))
SLEEP = "time.sleep(99)"
LAST_THREAD = f"threading.Thread(target=lambda: {SLEEP}).start(); print('up', flush=True); libc.syscall({{}}, 0)"

FORKING = [
    *("prlimit", "--nproc=40", "setpriv", f"--reuid={UID}", "--clear-groups"),
    *("perl", "-e", '$SIG{TERM} = $SIG{CHLD} = "IGNORE"; $| = 1; print "up\\n"; while (1) { fork }'),
]
"""Forty processes; each one that ends is replaced by another."""


def as_user(code: str, uids: tuple[int, int, int] = (UID, UID, UID)) -> list[str]:
    """Return the command line of a program that sets its real, effective and saved uid, prints `up`, and runs the
    code.
    """
    start = f"import ctypes, os, signal, threading, time\nlibc = ctypes.CDLL(None)\nos.setresuid{uids}\n"
    return [sys.executable, "-I", "-c", f"{start}{code}"]


@contextmanager
def running(command: list[str], user: int | None = None, *, uid: int = UID) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program and wait until it has printed `up`.

    At the end kill the program and all processes of the uid. uid: each test file has a uid of its own, because another
    file may run at the same time.
    """
    with subprocess.Popen(command, user=user, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"up\n":
                pytest.skip("this cannot be started here")
            yield process
        finally:
            process.kill()
            kill_all = "os.kill(-1, signal.SIGKILL)"
            subprocess.run(as_user(kill_all, (uid,) * 3), check=False)


UP = "print('up', flush=True)\n"
EXIT = ctypes.c_long({"x86_64": 60}.get(os.uname().machine, 93)).value
"""Number of the system call exit(2), which ends one thread."""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(as_user(UP + SLEEP), id="whose entry in /proc is root's"),
        pytest.param(as_user(f"signal.signal(15, signal.SIG_IGN)\n{UP}{SLEEP}"), id="that ignores SIGTERM"),
        pytest.param(as_user(f"{UP}os.kill(os.getpid(), signal.SIGSTOP)"), id="that is stopped"),
        pytest.param(as_user(LAST_THREAD.format(EXIT)), id="whose main thread has ended"),
        pytest.param(as_user(UP + SLEEP, (UID, 0, 0)), id="that runs a program of root's"),
        pytest.param(as_user(UP + SLEEP, (61_200, UID, 61_200)), id="that acts as the user"),
        pytest.param(as_user(UP + SLEEP, (SUBORDINATE[5],) * 3), id="with a subordinate uid"),
    ],
)
def test_a_process_of_the_account_ends(command: list[str]) -> None:
    """A process is found by each of its uids, however it hides, and is ended."""
    with running(command) as process:
        processes = Processes()
        assert process.pid in {each.id for each in processes.of(IDS)}
        processes.end(IDS)
        assert process.wait(10) < 0
        assert processes.of(IDS) == []


def test_processes_that_fork_away() -> None:
    """Processes that replace each other faster than /proc can be read are all killed."""
    with running(FORKING):
        processes = Processes()
        processes.end(IDS)
        assert processes.of(IDS) == []


def test_a_container_of_the_account_ends() -> None:
    """A process with another root directory, in a user namespace that the account has created, is found and ended."""
    hidden = ["unshare", "--user", "--map-root-user", "--root=/usr", "/bin/sh", "-c", "echo up; exec sleep 99"]
    with running(hidden, user=UID) as process:
        processes = Processes()
        assert process.pid in {each.id for each in processes.of(Ids(UID))}
        processes.end(Ids(UID))
        assert process.wait(10) < 0


@pytest.mark.parametrize(
    "uid", [pytest.param(UID + 1, id="another uid"), pytest.param(SUBORDINATE[-1] + 1, id="beyond the range")]
)
def test_processes_of_others_live_on(uid: int) -> None:
    """A process that has no id of the account keeps running, and so does a process of root."""
    with running(as_user(UP + SLEEP, (uid,) * 3)) as process:
        processes = Processes()
        found = {each.id for each in processes.all()}
        assert {process.pid, os.getpid()} <= found
        processes.end(IDS)
        assert process.poll() is None
        process.kill()


def test_a_container_of_roots_lives_on() -> None:
    """A process of the same uid keeps running if it is in a process namespace of root, even while forking processes are
    stopped.
    """
    inside = as_user(f"{UP}\nwhile True:\n    time.sleep(0.01)\n    print('.' * 4095, flush=True)")
    with running(["unshare", "--pid", "--fork", "--kill-child", *inside]) as outside, running(FORKING):
        children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
        processes = Processes()
        processes.end(IDS)
        (contained,) = [each for each in processes.all() if each.id == int(children[0])]
        assert contained.is_contained
        assert processes.of(IDS) == []
        assert outside.stdout is not None
        assert [outside.stdout.readline() for _ in range(50)]  # more than a pipe can hold, so it still writes


@pytest.mark.parametrize(
    ("subuid", "expected"),
    [
        pytest.param("bob:200000:65536\n", (range(200_000, 265_536),), id="by name"),
        pytest.param("1500:200000:65536\n", (range(200_000, 265_536),), id="by uid"),
        pytest.param("bob:1:2\nx\nbob:200000:\n\xff:1:y\nbob:7:1\n", (range(7, 8),), id="lines that are none"),
        pytest.param("bob:200000:65536\neve:265535:10\n", (), id="shared with another account"),
        pytest.param("bob:1000:10000\n", (), id="with the uid of another account in it"),
        pytest.param("", (), id="none"),
    ],
)
def test_subordinate_uids(tmp_path: Path, subuid: str, expected: tuple[range, ...]) -> None:
    """A process with an id from the account's ranges in /etc/subuid is ended, unless the range contains ids of another
    account.
    """
    host = bare_host(tmp_path)
    host.path("/etc/subuid").write_text(subuid)
    accounts = read(host.files)
    assert subordinate_uids(host.files, accounts.users["bob"], accounts) == expected
