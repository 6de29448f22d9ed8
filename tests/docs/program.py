"""The program `sallyport` for the shell of a page: each command is a fork of a process that has imported everything.

    with quick_program(directory) as folder:
        subprocess.run(["bash", script], env={**environ, "PATH": f"{folder}:{environ['PATH']}"})

The folder has a small program of the same name. It passes arguments, environment, directory and streams to the server,
and ends with the exit status of the command. The command `serve` is run by the installed program, because a shell ends
its jobs by signals.
"""

import array
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from threading import Thread

from sallyport.cli.main import main
from tests.running_service import PROGRAM

STREAMS = 3
CLIENT = f"""#!{sys.executable} -IS
import array, json, os, socket, sys
if sys.argv[1:2] == ["serve"]:
    os.execv({str(PROGRAM)!r}, [{str(PROGRAM)!r}, *sys.argv[1:]])
connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect({{path!r}})
streams = array.array("i", [0, 1, 2])
connection.sendmsg([b"s"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
asked = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
connection.sendall(asked.encode("utf-8", "surrogateescape") + b"\\n")
sys.exit(int(connection.makefile().read() or "1"))
"""


@contextmanager
def quick_program(directory: Path) -> Iterator[Path]:
    """Yield a folder with the program. directory: a directory for the folder and the socket of the server."""
    path, folder = directory / "program.sock", directory / "bin"
    folder.mkdir()
    (folder / "sallyport").write_text(CLIENT.format(path=str(path)))
    (folder / "sallyport").chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        command = [sys.executable, "-m", "tests.docs.program", str(listener.fileno())]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    with server:
        yield folder


def _serve(listener: socket.socket) -> None:
    """Run each command in a child process, until the process of the tests closes the standard input or ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system removes ended children
    gc.freeze()
    while not select([listener, 0], [], [])[0].count(0):
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(connection)
        connection.close()


def _run(connection: socket.socket) -> None:
    """Run the command that a client sends, and send its exit status."""
    streams = array.array("i")
    _, [(_, _, passed)], _, _ = connection.recvmsg(1, socket.CMSG_SPACE(STREAMS * streams.itemsize))
    streams.frombytes(passed)
    arguments, environ, directory = json.loads(connection.makefile("rb").readline())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    Thread(target=lambda: connection.recv(1) or os._exit(1), daemon=True).start()  # the client was killed
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    sys.argv = ["sallyport", *arguments]
    status = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(status).encode())
        os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
