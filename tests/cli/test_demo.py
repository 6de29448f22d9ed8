"""`sallyport demo`: from a RADIUS packet to the report, on a machine without an installation."""

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.docs.commands import ROOT, differs
from tests.running_service import PROGRAM, RunningService


@contextmanager
def taken_ports() -> Iterator[None]:
    """Occupy the default ports."""
    with ExitStack() as stack:
        for port, kind in ((1812, socket.SOCK_DGRAM), (1813, socket.SOCK_DGRAM), (8080, socket.SOCK_STREAM)):
            sock = stack.enter_context(socket.socket(socket.AF_INET, kind))
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue  # another program uses the port
            if kind == socket.SOCK_STREAM:
                sock.listen()
        yield


def test_demo_once_prints_the_report(stopped: RunningService) -> None:
    """The output has devices with their products, a device that registered again after its deletion, and the report. It
    has neither a token nor the address of the service, because both are invalid after the demo.
    """
    with taken_ports():
        done = stopped.cli("demo", "--once")
    assert done.returncode == 0, done
    assert done.stderr == ""
    for product in ("Microsoft NPS", "Cisco IOS", "Fortinet FortiGate", "Aruba Wireless", "MikroTik RouterOS"):
        assert product in done.stdout
    assert re.search(r"FreeRADIUS +127\.0\.0\.16 .*Juniper EX", done.stdout)
    assert re.search(r"after its next login +\d+ +MikroTik RouterOS +Lobby +2\n", done.stdout)
    assert re.search(r"mallory +pap +reject +reject +unknown user +1\n", done.stdout)
    assert re.search(r"sallyport demo +run the demo again", done.stdout)
    for gone in ("sp_", "http://", "curl", "SALLYPORT_DATA_DIR"):
        assert gone not in done.stdout
    assert not stopped.data_dir.exists()


def test_the_readme_shows_what_the_demo_prints(stopped: RunningService) -> None:
    """Each line of the README's output is a line of the demo, in the same order. Times may differ."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("```text\n")[2].partition("```")[0]
    with taken_ports():
        done = stopped.cli("demo", "--once")
    assert differs([line for line in shown.splitlines() if line], done.stdout) == ""


def port_of(text: str) -> str:
    """Return the HTTP port that the demo prints first."""
    found = re.search(r"HTTP on 127\.0\.0\.1:(\d+)", text)
    assert found is not None, text
    return found[1]


def examples(text: str) -> list[str]:
    """Return the commands that the demo prints at its end."""
    found = [line for line in text.partition("token ")[2].splitlines() if line.startswith(("curl ", "SALLYPORT_"))]
    assert len(found) == 7
    return found


def run(command: str, environ: Mapping[str, str], folder: Path) -> tuple[str, int]:
    """Run a printed command in a shell. Return it with its exit status; 22 means that the API has refused it."""
    command_that_fails = command.replace("curl -s", "curl -s --fail")
    done = subprocess.run(["bash", "-c", command_that_fails], env=environ, check=False, cwd=folder)
    return command, done.returncode


def texts(folder: Path) -> dict[str, str]:
    """Return the texts of the files in a folder, by name."""
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_runs_until_a_signal(stopped: RunningService, tmp_path: Path, sent: signal.Signals) -> None:
    """The API accepts the printed token, and the printed commands work in their order. After the signal, the exit
    status is 0 and the data of the demo is deleted."""
    output = tmp_path / "output"
    with taken_ports(), output.open("wb") as out:
        process = subprocess.Popen([PROGRAM, "demo"], stdout=out, stderr=out, cwd=tmp_path, env=stopped.environ)
        try:
            deadline = time.monotonic() + 300
            while (
                "The service keeps running" not in output.read_text()
                and process.poll() is None
                and time.monotonic() < deadline
            ):
                time.sleep(0.05)
            text = output.read_text()
            for path in ("/sign-in", "/docs", "/openapi.json", "/metrics", "/healthz", "/readyz"):
                assert f"http://127.0.0.1:{port_of(text)}{path}\n" in text
            token, folder = re.search(r"token +(\S+)", text), re.search(r"SALLYPORT_DATA_DIR=(\S+)", text)
            assert token is not None, text
            assert folder is not None, text
            answer = httpx.post(
                f"http://127.0.0.1:{port_of(text)}/network_device/ListDevices",
                json={"orgId": 1, "tenantId": 1, "domainId": 2, "pageId": 1, "pageSize": 10},
                headers={"X-Authorization": token[1]},
                trust_env=False,
            )
            assert answer.json()["totalCount"] == 7
            done = [run(each, stopped.environ, tmp_path) for each in examples(text)]
            assert done == [(each, 0) for each in examples(text)]
            process.send_signal(sent)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    assert not Path(folder[1]).exists()
    assert texts(tmp_path / "demo-files") == texts(ROOT / "docs/guides/gitops/demo"), "copy the files of the demo"
