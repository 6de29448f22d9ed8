"""/openapi.json is valid OpenAPI 3.1, and the clients that two programs generate from it work."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copy

import httpx
import pytest

from tests.peers.npm_verifiers import MODULES, needs_npm
from tests.peers.programs import find
from tests.running_service import running_service

HERE = Path(__file__).with_name("api_clients")
VALIDATE = """
import { Validator } from "@seriousme/openapi-schema-validator";
const validator = new Validator();
const result = await validator.validate("openapi.json");
console.log(JSON.stringify([validator.version, result.valid, result.errors ?? []]));
"""
COMPILE = ("--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "--skipLibCheck")
GENERATE = ("--default-non-nullable", "false")
"""A request may leave out a field that has a default."""

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_npm]


@dataclass(frozen=True)
class Described:
    """A service, and a directory with its /openapi.json. caller: what a script of HERE takes as arguments."""

    directory: Path
    caller: tuple[str, ...]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    """Yield a running service with its description, beside the packages from npm."""
    directory = tmp_path_factory.mktemp("clients")
    with running_service(tmp_path_factory.mktemp("service"), {}) as service:
        url = f"http://127.0.0.1:{service.ports.http}"
        (directory / "openapi.json").write_bytes(httpx.get(f"{url}/openapi.json", trust_env=False).content)
        (directory / "package.json").write_text('{"type": "module"}')
        (directory / "node_modules").symlink_to(MODULES)
        token = service.call("token.create", org=1, tenant=1, role="admin")["token"]
        yield Described(directory, (url, token, "1", "1"))


def run(directory: Path, *command: str | Path) -> str:
    """Run a program and return what it prints. Raise AssertionError with its output if it fails."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_description_is_valid(described: Described) -> None:
    """A validator that is not of Python, and that has the schema of OpenAPI 3.1, accepts the document."""
    (described.directory / "validate.mjs").write_text(VALIDATE)
    assert json.loads(run(described.directory, find("node"), "validate.mjs")) == ["3.1", True, []]


def test_a_generated_python_client_works(described: Described) -> None:
    """openapi-python-client generates the client without a warning."""
    program, package = Path(sys.executable).with_name("openapi-python-client"), described.directory / "sallyport_client"
    config = described.directory / "config.yml"
    config.write_text("post_hooks: []\n")
    told = run(
        described.directory, program, "generate", "--path", "openapi.json", "--meta", "none", "--output-path", package,
        "--config", config, "--fail-on-warning",
    )  # fmt: skip
    assert "warning" not in told.lower()
    script = str(HERE / "ten_operations.py")
    called = run(described.directory, sys.executable, script, str(described.directory), *described.caller)
    assert called == "ten operations done\n"


def test_a_generated_typescript_client_works(described: Described) -> None:
    """openapi-typescript generates the types. The compiler accepts the calls, and refuses one with an unknown field."""
    directory = described.directory
    run(
        directory,
        find("node"),
        MODULES / "openapi-typescript/bin/cli.js",
        "openapi.json",
        "--output",
        "schema.d.ts",
        *GENERATE,
    )
    copy(HERE / "ten_operations.ts", directory)
    run(directory, find("node"), MODULES / "typescript/bin/tsc", *COMPILE, "ten_operations.ts")
    called = run(directory, find("node"), "ten_operations.js", *described.caller)
    assert called == "ten operations done\n"
