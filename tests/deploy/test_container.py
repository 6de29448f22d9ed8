"""Static checks of the container file. The image is built and run in test_image.py."""

import json
import re
import subprocess
import sys
from pathlib import Path

from sallyport.settings.settings import Settings, load, unknown_environment
from tests.running_service import running_service

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "src" / "sallyport" / "deploy" / "Containerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Return the (instruction, arguments) of each line. Comments are left out, and continued lines are joined."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def last_stage() -> list[tuple[str, str]]:
    """Return the instructions of the final image."""
    found = instructions()
    return found[max(at for at, (word, _) in enumerate(found) if word == "FROM") :]


def of_kind(word: str) -> list[str]:
    """Return the arguments of each use of an instruction in the last stage."""
    return [rest for each, rest in last_stage() if each == word]


def environment() -> dict[str, str]:
    """Return the variables that the image sets."""
    return dict(part.split("=", 1) for rest in of_kind("ENV") for part in rest.split())


def probe() -> list[str]:
    """Return the command of the health check."""
    (instruction,) = of_kind("HEALTHCHECK")
    command: list[str] = json.loads(instruction.partition("CMD ")[2])
    return command


def test_the_image_runs_as_an_ordinary_user() -> None:
    """The user is given as a number, so that a cluster can check that it is not root.

    The user owns only the volume. No later step runs as root.
    """
    words = [word for word, _ in last_stage()]
    assert of_kind("USER") == ["10001:10001"]
    assert "RUN" not in words[words.index("USER") :]
    (made,) = of_kind("RUN")
    assert "--uid 10001" in made
    assert "install -d -o sallyport -g sallyport -m 0700 /data" in made
    assert of_kind("VOLUME") == of_kind("WORKDIR") == [environment()["SALLYPORT_DATA_DIR"]]


def test_the_final_stage_has_nothing_of_the_build() -> None:
    """The compiler is in another stage. The base images have a version, and no layer contains a secret."""
    assert len([word for word, _ in instructions() if word == "FROM"]) == 2
    assert [rest for word, rest in instructions() if word == "FROM"] == ["${BASE} AS build", "${BASE}"]
    assert re.search(r"(?m)^ARG BASE=docker\.io/library/debian:12\.\d+-slim@sha256:[0-9a-f]{64}$", TEXT)
    assert of_kind("COPY") == ["--from=build /opt/sallyport /opt/sallyport"]
    assert not re.search(r"(?i)secret|password|token|_key", "\n".join(rest for _, rest in instructions()))
    assert "--read-only" in TEXT and "--cap-drop ALL" in TEXT  # by the run command in the Containerfile


def test_signals_reach_the_service() -> None:
    """The service is process 1 and is started without a shell. The stop signal makes it drain."""
    assert json.loads(of_kind("ENTRYPOINT")[0]) == ["/opt/sallyport/bin/sallyport"]
    assert json.loads(of_kind("CMD")[0]) == ["serve"]
    assert of_kind("STOPSIGNAL") == ["SIGTERM"]


def test_the_variables_of_the_image_are_settings() -> None:
    """Each variable of the image is a setting and has a valid value."""
    assert unknown_environment(environment()) == []
    assert load(Path("/dev/null"), environment()).http_bind.port == 8080


def test_the_ports_are_those_of_the_service() -> None:
    """The exposed ports are the default ports of RADIUS, RadSec and the API."""
    settings, http = Settings(), load(Path("/dev/null"), environment()).http_bind.port
    radius = {f"{address.port}/udp" for address in (*settings.radius_auth_bind, *settings.radius_acct_bind)}
    assert set(of_kind("EXPOSE")[0].split()) == radius | {"2083/tcp", f"{http}/tcp"}
    assert f"http://127.0.0.1:{http}/readyz" in probe()[-1]


def test_only_locked_packages_are_installed() -> None:
    """All packages are installed from the lock files, which have hashes."""
    installed = [
        words for word, rest in instructions() if word == "RUN" for words in re.findall(r"pip install ([^&]*)", rest)
    ]
    assert all("--no-deps" in words for words in installed)
    sources = [words.split()[-1] for words in installed]
    assert sources == ["requirements.lock", "requirements-postgres.lock", "requirements-otel.lock", "."]


def test_the_health_check_succeeds_only_at_a_ready_service(tmp_path: Path) -> None:
    def healthy(port: int) -> bool:
        program = probe()[2].replace(":8080/", f":{port}/")
        return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0

    with running_service(tmp_path) as service:
        port = service.ports.http
        assert healthy(port)
    assert not healthy(port)
