"""A real Prometheus that scrapes a service every second, with the rules of grafana/."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.grafana.expressions import RULES
from tests.ports import free_port

READY_S = 90.0


class Prometheus:
    """The HTTP API of a Prometheus."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data in an answer of the API."""
        answer = httpx.get(f"{self._base}/api/v1/{path}", params=parameters, timeout=30, trust_env=False)
        assert answer.status_code == 200, f"{path} {parameters}: {answer.text}"
        return answer.json()["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current series of an expression."""
        result: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return result

    def wait_for(self, expression: str, *, seconds: float = 120.0) -> list[dict[str, Any]]:
        """Wait until an expression has series, and return them."""
        deadline = time.monotonic() + seconds
        while not (found := self.query(expression)):
            assert time.monotonic() < deadline, f"no series: {expression}"
            time.sleep(0.2)
        return found

    def is_ready(self) -> bool:
        """Return whether the server answers."""
        try:
            return httpx.get(f"{self._base}/-/ready", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def scraping(directory: Path, port: int) -> Iterator[Prometheus]:
    """Yield a Prometheus that scrapes the metrics on a port of this machine."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    job = {"job_name": "sallyport", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in RULES],
        "scrape_configs": [job],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    own = free_port()
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{own}",
                "--enable-feature=exemplar-storage",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        server, deadline = Prometheus(own), time.monotonic() + READY_S
        while not server.is_ready():
            assert process.poll() is None, (directory / "prometheus.log").read_text(encoding="utf-8")[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()
