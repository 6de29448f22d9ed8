"""The service as its operator runs it: `sallyport serve` in a child process on loopback ports of its own.

    def test_it(tmp_path: Path) -> None:
        with running_service(tmp_path) as service:
            service.cli("domain", "add", "corp", "--org", "1", "--tenant", "1")
            assert service.post("/network_device/ListDevices", {...})["totalCount"] == 0
            with service.radius("secret") as client:
                assert client.login("ann", "hello") == ACCESS_ACCEPT

At the first start the system chooses the ports. A later start of the same object uses the same ports, so that a test
can `kill()` or `stop()` the service and `start()` it again.
"""

import json
import os
import secrets
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from sallyport.settings.settings import POSTGRES
from sallyport.store.postgres.connection import connect
from sallyport.store.postgres.rows import PostgresRows
from sallyport.store.transfer import write_file
from tests.areas import ENGINE, new_database
from tests.forked import Forked, completed
from tests.peers.postgres import database_in, postgres_execute, postgres_rows
from tests.radius_client import RadiusClient

PROGRAM = Path(sys.executable).with_name("sallyport")
READY_S = 90.0
STOP_S = 30.0


@dataclass(frozen=True)
class Ports:
    """The ports of the service on 127.0.0.1."""

    http: int
    auth: int
    acct: int


class ServiceError(Exception):
    """The service did not start or did not stop. The message contains the end of its log."""


def controlled(data_dir: Path, asked: Mapping[str, object]) -> Any:
    """Send a request to the control socket of the service in a data directory. Return the result of a request that must
    succeed.
    """
    directory = os.open(data_dir, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(30)
            sock.connect(f"/proc/self/fd/{directory}/control.sock")
            sock.sendall(json.dumps(asked).encode() + b"\n")
            answer = json.loads(sock.makefile("rb").readline())
    finally:
        os.close(directory)
    assert "error" not in answer, f"{asked}: {answer['error']}"
    return answer["result"]


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return why a service did not start. The reason is the last line of its log, and no line is plain text."""
    last = [json.loads(line) for line in done.stderr.splitlines()][-1]
    assert (last["event"], last["level"]) == ("service_failed", "error")
    text: str = last["error"]
    return text


class RunningService:
    """A service and its data directory.

    directory: an empty directory for the data and the log. settings: environment variables in addition to those of the
    data directory and the binds, such as {"SALLYPORT_REJECT_DELAY_S": "0"}; the value None removes a variable. wrapper:
    the beginning of the command line, which is a program that executes the rest (nsenter, strace -D). fresh: whether
    the service is started as a new program, for tests that measure the start; otherwise it is forked from a process
    that has imported everything. program: the command of another installation.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str | None] | None = None,
        *,
        wrapper: Sequence[str] = (),
        fresh: bool = False,
        program: Path = PROGRAM,
    ) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.log_path = directory / "log"
        own = {"SALLYPORT_DATABASE": database_in(directory, is_empty=True)} if ENGINE == "postgres" else {}
        self._settings = {**own, **(settings or {})}
        database = self._settings.get("SALLYPORT_DATABASE") or ""
        self.url = database if database.startswith(POSTGRES) else ""
        self._wrapper = tuple(wrapper)
        self._fresh = fresh or bool(wrapper) or program != PROGRAM
        self._program = program
        self._ports: Ports | None = None
        self._process: subprocess.Popen[bytes] | Forked | None = None

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the service, and wait until it is ready. Raise ServiceError."""
        assert self._process is None, "it runs already"
        if not (self._fresh or self.data_dir.exists() or self._settings.get("SALLYPORT_DATABASE")):
            self._put_tables()
        self.log_path.touch()
        written = self.log_path.stat().st_size
        self._process = self._started()
        deadline = time.monotonic() + READY_S
        while (ready := self._ready(written)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                status = self._process.poll()
                self.kill()
                raise ServiceError(f"not ready; exit status {status}\n{self.log()[-4000:]}")
            time.sleep(0.01)
        self._ports = Ports(*(_port(ready[key][0]) for key in ("http", "radius_auth", "radius_acct")))

    def _put_tables(self) -> None:
        """Put the tables of a new store, and a master key, into the data directory. Creating the tables takes a
        quarter of the time of a first start."""
        self.data_dir.mkdir(mode=0o700)
        key = f"{secrets.token_hex(32)}\n"
        for name, octets in (("sallyport.db", new_database()), ("master.key", key.encode())):
            (self.data_dir / name).touch(mode=0o600)
            (self.data_dir / name).write_bytes(octets)

    def upgrade(self, directory: Path) -> None:
        """Let later starts run the package `sallyport` in a directory, in a new process."""
        self._fresh = True
        self._settings["PYTHONPATH"] = str(directory)

    def _started(self) -> subprocess.Popen[bytes] | Forked:
        if not self._fresh:
            log_path, environ = self.log_path, self.environ
            return Forked(("serve",), environ=environ, directory=self.directory, output=log_path, errors=log_path)
        with self.log_path.open("ab") as log:
            command = [*self._wrapper, self._program, "serve"]
            return subprocess.Popen(command, stdout=log, stderr=log, env=self.environ, cwd=self.directory)

    def stop(self) -> int:
        """Send SIGTERM, wait for the end and return the exit status. Do nothing if the service is not running."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise ServiceError(f"it does not stop\n{self.log()[-4000:]}") from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL, as in a crash. Do nothing if the service is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def process_id(self) -> int:
        """The process ID of the running service."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the service was started and has not ended, by `stop`, by `kill` or by itself."""
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """Return everything that the service has logged so far, in all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _ready(self, written: int) -> dict[str, Any] | None:
        with self.log_path.open("rb") as log:
            log.seek(written)
            for line in log.read().splitlines(keepends=True):
                # where the disk was full, it follows the begin of another line, which may be the same one
                at = line.rfind(b'{"radius_auth"')
                if at >= 0 and line.endswith(b"}\n"):
                    event: dict[str, Any] = json.loads(line[at:])
                    if event.get("event") == "ready":
                        return event
        return None

    # --- requests --------------------------------------------------------------------------------------------

    @property
    def ports(self) -> Ports:
        """The ports. They are known after the first start and then stay the same."""
        assert self._ports is not None, "it has not been started yet"
        return self._ports

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the caller with the settings of this service.

        It contains no other SALLYPORT_ variables.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SALLYPORT_")}
        ports = self._ports or Ports(0, 0, 0)
        settings: dict[str, str | None] = {
            "SALLYPORT_DATA_DIR": str(self.data_dir),
            "SALLYPORT_HTTP_BIND": f"127.0.0.1:{ports.http}",
            "SALLYPORT_RADIUS_AUTH_BIND": f"127.0.0.1:{ports.auth}",
            "SALLYPORT_RADIUS_ACCT_BIND": f"127.0.0.1:{ports.acct}",
            "SALLYPORT_DISK_RESERVE_MIB": "0",
            "SALLYPORT_EGRESS": "default, 127.0.0.0/8, ::1/128",
            "SALLYPORT_LOG_FORMAT": "json",
            **self._settings,
        }
        return kept | {name: value for name, value in settings.items() if value is not None}

    @property
    def token(self) -> str:
        """The admin token for organization 1, tenant 1, which the first start has printed."""
        return (self.data_dir / "admin.token").read_text().strip()

    def cli(self, *args: str, input: str | bytes = b"") -> "subprocess.CompletedProcess[str]":
        """Run `sallyport ARGS` with the settings of the service, whether or not the service is running."""
        octets = input.encode() if isinstance(input, str) else input
        return completed(args, environ=self.environ, directory=self.directory, input=octets)

    def program(self, *args: str, input: str | bytes = b"") -> "subprocess.CompletedProcess[str]":
        """Run a command in a process of its own, for tests that need its streams. A `fresh` service runs the installed
        program.
        """
        if not self._fresh:
            return RunningService.cli(self, *args, input=input)
        done = subprocess.run(
            [self._program, *args],
            input=input.encode() if isinstance(input, str) else input,
            env=self.environ,
            cwd=self.directory,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return subprocess.CompletedProcess(args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *args: str, input: str | bytes = b"") -> str:
        """Run a command, which must succeed. Return its standard output without the last line end."""
        done = self.cli(*args, input=input)
        assert done.returncode == 0, f"sallyport {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.removesuffix("\n")

    def call(self, command: str, **arguments: Any) -> Any:
        """Run a command of the control socket, which must succeed. Return its result."""
        return controlled(self.data_dir, {"command": command, "arguments": arguments})

    def run(self, path: str, body: object = MappingProxyType({}), *, domain: str | None = None) -> Any:
        """Run an operation over the control socket, which must succeed. Return its answer.

        domain: the name or the ID of a domain.
        """
        whole = dict(body) if isinstance(body, Mapping) else body
        return controlled(
            self.data_dir, {"path": path, "body": whole, **({} if domain is None else {"domain": domain})}
        )

    def add_domain(self, name: str, org: int = 1, tenant: int = 1, **fields: object) -> int:
        """Add a domain and return its ID.

        fields: further fields of AddDomain.
        """
        self.call("tenant.add", org=org, tenant=tenant)
        body = {"orgId": org, "tenantId": tenant, "domainName": name, **fields}
        return int(self.run("/ad/AddDomain", body)["domainId"])

    def domains(self) -> dict[str, Any]:
        """Return the domains of organization 1, tenant 1, keyed by name. The values are those of GetAllDomains."""
        listed = self.run("/ad/GetAllDomains", {"orgId": 1, "tenantId": 1, "pageSize": 100})["domains"]
        return {each["domainName"]: each for each in listed}

    def add_client(
        self,
        name: str,
        address: str,
        secret: str | bytes | None = None,
        *domains: str,
        org: int = 1,
        tenant: int = 1,
        **fields: object,
    ) -> None:
        """Add a RADIUS client.

        domains: names or IDs of domains, the default domain first. fields: further fields of AddClient.
        """
        given = {"hex": (secret.encode() if isinstance(secret, str) else secret).hex()} if secret else None
        body = {"orgId": org, "tenantId": tenant, "name": name, "address": address, "secret": given, **fields}
        named = {"domains": domains} if domains else {}
        controlled(self.data_dir, {"path": "/network_device/AddClient", "body": body, **named})

    def clients(self) -> dict[str, Any]:
        """Return the RADIUS clients of organization 1, tenant 1, keyed by name. The values are those of ListClients."""
        found: dict[str, Any] = {}
        for page in count(1):
            body = {"orgId": 1, "tenantId": 1, "pageId": page, "pageSize": 1000}
            answer = self.run("/network_device/ListClients", body)
            found |= {each["name"]: each for each in answer["clients"]}
            if page * 1000 >= answer["totalCount"]:
                break
        return found

    def add_rule(self, domain: str, **fields: object) -> int:
        """Add a login rule and return its ID.

        fields: the fields of AddLoginRule.
        """
        return int(self.run("/ad/AddLoginRule", fields, domain=domain)["ruleId"])

    def devices(self, domain: str = "default") -> list[dict[str, Any]]:
        """Return the first 100 devices of a domain, as in ListDevices."""
        listed = self.run("/network_device/ListDevices", {"pageSize": 100}, domain=domain)
        return list(listed["network_devices"])

    def sessions(self, domain: str = "default", **fields: object) -> list[dict[str, Any]]:
        """Return the first 100 sessions of a domain, newest first.

        fields: further fields of ListSessions.
        """
        listed = self.run("/network_device/ListSessions", {"pageSize": 100, **fields}, domain=domain)
        return list(listed["sessions"])

    def disconnect(self, session: int, domain: str = "default") -> list[dict[str, Any]]:
        """Ask the device of a session to end it. Return the results of DisconnectSession."""
        return list(self.run("/network_device/DisconnectSession", {"sessionId": session}, domain=domain)["results"])

    def add_user(self, name: str, password: str | bytes, domain: str = "default", **fields: object) -> int:
        """Add an endpoint user and return its ID.

        fields: further fields of addEpmUserInfo.
        """
        octets = password.encode() if isinstance(password, str) else password
        body = {"userName": name, "password": {"hex": octets.hex()}, **fields}
        return int(self.run("/api/v1/endpointUsers/addEpmUserInfo", body, domain=domain)["userId"])

    def remove_user(self, name: str, domain: str = "default") -> None:
        """Delete an endpoint user."""
        body = {"key": "delete", "epmUsers": [{"userName": name}]}
        self.run("/api/v1/endpointUsers/deleteEpmUser", body, domain=domain)

    def enrol_totp(self, name: str, domain: str = "default") -> str:
        """Create a pending TOTP seed for a user, and return it."""
        return str(self.run("/api/v1/endpointUsers/enrolTotp", {"userName": name}, domain=domain)["seed"])

    def confirm_totp(self, name: str, code: str, domain: str = "default") -> None:
        """Confirm a seed with its first code."""
        self.run("/api/v1/endpointUsers/confirmTotp", {"userName": name, "code": code}, domain=domain)

    def users(self, domain: str = "default") -> list[dict[str, Any]]:
        """Return the endpoint users of a domain."""
        body = {"pageSize": 1000}
        found: list[dict[str, Any]] = self.run("/api/v1/endpointUsers/listAllEpmUsers", body, domain=domain)["epmUsers"]
        return found

    def instances(self, domain: str = "default") -> list[dict[str, Any]]:
        """Return the instances of a domain."""
        found: list[dict[str, Any]] = self.run("/api/v1/instances/list", {"pageSize": 1000}, domain=domain)["instances"]
        return found

    def set_mode(self, domain: str, mode: str, **fields: object) -> None:
        """Set the mode of a domain.

        fields: further fields of updateDomainEnforcement.
        """
        self.run("/ad/updateDomainEnforcement", {"enforcementMode": mode, **fields}, domain=domain)

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return rows of the store.

        Another connection reads them from its file, so that the service need not be running.
        """
        if self.url:
            return postgres_rows(self.url, sql, parameters)
        with closing(sqlite3.connect(f"{(self.data_dir / 'sallyport.db').as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, parameters).fetchall()

    def execute(self, sql: str, *parameters: object) -> None:
        """Change stored rows without using the service."""
        if self.url:
            postgres_execute(self.url, sql, parameters)
            return
        with closing(sqlite3.connect(self.data_dir / "sallyport.db", timeout=10)) as connection, connection:
            connection.execute(sql, parameters)

    def database(self) -> bytes:
        """Return all octets of the database and its log. For PostgreSQL, return those of a copy of the database."""
        if not self.url:
            return b"".join(
                path.read_bytes() for path in self.data_dir.iterdir() if path.name.startswith("sallyport.db")
            )
        with connect(self.url) as connection, tempfile.TemporaryDirectory() as directory:
            connection.execute("begin")
            write_file(Path(directory, "copy.db"), PostgresRows(connection))
            return Path(directory, "copy.db").read_bytes()

    def stored(self) -> bytes:
        """Return all octets in the data directory, except those of files that are deleted meanwhile."""
        parts = []
        for path in self.data_dir.rglob("*"):
            with suppress(FileNotFoundError):
                parts.append(path.read_bytes() if path.is_file() else b"")
        return b"".join(parts)

    def request(self, method: str, path: str, *, token: str | None = None, **options: Any) -> httpx.Response:
        """Send an HTTP request with an access token.

        The default is the token of the first start; if the token is empty, send none.
        """
        token = self.token if token is None else token
        headers = {**({"X-Authorization": token} if token else {}), **options.pop("headers", {})}
        certificate = self._settings.get("SALLYPORT_TLS_CERTIFICATE")
        if certificate:
            options["verify"] = ssl.create_default_context(cafile=certificate)
        url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.ports.http}{path}"
        return httpx.request(method, url, headers=headers, timeout=30, trust_env=False, **options)

    def post(self, path: str, body: object, *, status: int = 200, token: str | None = None) -> Any:
        """Send a POST request with a JSON body, and return the JSON of the answer. Assert the status."""
        answer = self.request("POST", path, json=body, token=token)
        assert answer.status_code == status, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def radius(self, secret: str | bytes, *, source: str = "127.0.0.1") -> RadiusClient:
        """Return a RADIUS client for the authentication port.

        source: the address of this machine from which it sends.
        """
        return RadiusClient(self.ports.auth, secret, source=source)


@contextmanager
def running_service(
    directory: Path,
    settings: Mapping[str, str | None] | None = None,
    *,
    wrapper: Sequence[str] = (),
    fresh: bool = False,
) -> Iterator[RunningService]:
    """Run a service until the block ends.

    directory: an empty directory.
    """
    service = RunningService(directory, settings, wrapper=wrapper, fresh=fresh)
    service.start()
    try:
        yield service
        service.stop()
    finally:
        service.kill()


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
