"""A real privacyIDEA server. It is installed once into .venv-privacyidea, and runs on a loopback port.

Its packages are pinned in privacyidea.txt and are only wheels, so that Python 3.11 to 3.13 needs no compiler. They are
separate from the project's packages, so that they do not determine the versions of these.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import subprocess
import sys
import time
from base64 import b32encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.ports import free_port

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "privacyidea.txt"
VENV = HERE.parent.parent / ".venv-privacyidea"
REALM = "corp"
INSTALL_S = 300
START_S = 90


def python() -> Path:
    """Return the Python that has privacyIDEA. If it is missing, install it. If that is impossible, skip the test."""
    VENV.mkdir(exist_ok=True)
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    ready = VENV / "ready"
    program = VENV / "bin" / "python"
    folder = os.open(VENV, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # one test process installs, the others wait
        if not ready.is_file() or ready.read_text() != wanted:
            _install(program)
            ready.write_text(wanted)
    finally:
        os.close(folder)
    return program


def _install(program: Path) -> None:
    # pip installs without dependencies and without compiling modules that are never imported
    pip = [sys.executable, "-m", "pip", "--python", str(program), "--disable-pip-version-check", "install", "--quiet"]
    patience = ["--retries", "2", "--timeout", "30"]
    options = ["--no-deps", "--no-compile", "--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS)]
    venv = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)]
    for command in (venv, [*pip, *patience, *options]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"privacyIDEA is not installed: not done in {INSTALL_S} s")
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
            pytest.skip(f"privacyIDEA cannot be installed: {' '.join(said[-2:])}")


@contextmanager
def running_privacyidea(directory: Path, users: Sequence[str]) -> Iterator[PrivacyIdea]:
    """Yield a server whose users are in the default realm `corp`. Their push tokens poll."""
    program = python()
    port, password = free_port(), secrets.token_urlsafe()
    _configure(directory, users)
    log = directory / "output"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "-P", HERE / "privacyidea_serve.py", str(port), password],
            env={**os.environ, "PRIVACYIDEA_CONFIGFILE": str(directory / "pi.cfg")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            _await_start(client, process, log)
            server = PrivacyIdea(client, process)
            server.set_up(password, directory / "passwd")
            yield server
    finally:
        server_stop(process)


def server_stop(process: subprocess.Popen[bytes]) -> None:
    """End the server, and wait until it has ended."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    process.kill()
    process.wait()


def _configure(directory: Path, users: Sequence[str]) -> None:
    lines = [f"{user}:x:{1000 + number}:100:{user}:/:/bin/sh\n" for number, user in enumerate(users)]
    (directory / "passwd").write_text("".join(lines))
    settings = {
        "SECRET_KEY": secrets.token_urlsafe(),
        "PI_PEPPER": secrets.token_urlsafe(),
        "SUPERUSER_REALM": ["super"],
        "SQLALCHEMY_DATABASE_URI": f"sqlite:///{directory}/privacyidea.db",
        "PI_ENCFILE": f"{directory}/enckey",
        "PI_AUDIT_KEY_PRIVATE": f"{directory}/private.pem",
        "PI_AUDIT_KEY_PUBLIC": f"{directory}/public.pem",
        "PI_LOGFILE": f"{directory}/privacyidea.log",
    }
    (directory / "pi.cfg").write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))


def _await_start(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(httpx.TransportError):
            client.get("/healthz/livez")
            return
        time.sleep(0.1)
    raise AssertionError(f"privacyIDEA does not start: {log.read_text(errors='replace')[-2000:]}")


class Phone:
    """The privacyIDEA Authenticator on a user's phone: it has the key, polls for challenges and signs its answers. The
    protocol is in privacyIDEA's lib/tokens/pushtoken.py: RSA-SHA256 (PKCS1 v1.5) in base32 over texts joined by |.
    """

    def __init__(self, client: httpx.Client, serial: str, credential: str) -> None:
        self._client = client
        self._serial = serial
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        rollout = {"enrollment_credential": credential, "fbtoken": "", "pubkey": urlsafe_b64encode(public).decode()}
        assert value_of(client.post("/ttype/push", data={"serial": serial, **rollout})) is True

    def waiting(self) -> list[str]:
        """Return the nonces of the open challenges."""
        now = datetime.now(UTC).isoformat()
        signed = {"serial": self._serial, "timestamp": now, "signature": self._sign(self._serial, now)}
        challenges = value_of(self._client.get("/ttype/push", params=signed))
        assert isinstance(challenges, list)
        return [challenge["nonce"] for challenge in challenges]

    def approve(self) -> str:
        """Accept the only open challenge. Return the code that the phone then shows, or None if it shows no code."""
        (nonce,) = self.waiting()
        return self._answer({"signature": self._sign(nonce, self._serial)}).get("display_code", "")

    def decline(self, reason: str = "") -> None:
        """Decline the only open challenge.

        reason: unknown_trigger or cancelled, as newer apps report it.
        """
        (nonce,) = self.waiting()
        given = {"decline_reason": reason} if reason else {}
        self._answer(
            {"decline": "1", **given, "signature": self._sign(nonce, self._serial, "decline", *given.values())}
        )

    def _answer(self, answer: Mapping[str, str]) -> dict[str, str]:
        response = self._client.post("/ttype/push", data={"serial": self._serial, **answer})
        assert value_of(response) is True
        return response.json().get("detail") or {}

    def _sign(self, *parts: str) -> str:
        return b32encode(self._key.sign("|".join(parts).encode(), padding.PKCS1v15(), hashes.SHA256())).decode()


def value_of(response: httpx.Response) -> object:
    """Return result.value of an answer that has no error."""
    assert response.status_code == 200, response.text
    return response.json()["result"]["value"]


@dataclass
class PrivacyIdea:
    """A client that acts as the admin of a running server."""

    client: httpx.Client
    process: subprocess.Popen[bytes]
    admin_token: str = ""

    @property
    def url(self) -> str:
        """Return the server's URL."""
        return str(self.client.base_url)

    def set_up(self, password: str, passwd: Path) -> None:
        """Set up the realm, its users, and a policy for push tokens that poll without a gateway."""
        token = self.client.post("/auth", data={"username": "admin", "password": password}).json()["result"]["value"]
        self.admin_token = token["token"]
        self.post("/resolver/people", {"type": "passwdresolver", "fileName": str(passwd)})
        self.post(f"/realm/{REALM}", {"resolvers": "people"})
        self.post(f"/defaultrealm/{REALM}", {})
        push = f"push_firebase_configuration=poll only, push_registration_url={self.url}/ttype/push"
        self.policy("push", "enrollment", push)

    def post(self, path: str, form: Mapping[str, str]) -> dict[str, dict[str, str]]:
        """Send a form as the admin, and return the complete answer."""
        response = self.client.post(path, data=form, headers={"Authorization": self.admin_token})
        value_of(response)
        document: dict[str, dict[str, str]] = response.json()
        return document

    def get(self, path: str, **params: str) -> object:
        """Read a value as the admin."""
        return value_of(self.client.get(path, params=params, headers={"Authorization": self.admin_token}))

    def policy(self, name: str, scope: str, action: str, user: str = "") -> None:
        """Set a policy for one user, or for all users."""
        self.post(f"/policy/{name}", {"scope": scope, "action": action, "user": user})

    def add_totp(self, user: str, seed: bytes, pin: str = "") -> str:
        """Give the user a TOTP token (SHA-1, 30 s, 6 digits), and return its serial."""
        form = {"type": "totp", "user": user, "realm": REALM, "otpkey": seed.hex(), "pin": pin, "genkey": "0"}
        return self.post("/token/init", form)["detail"]["serial"]

    def add_push(self, user: str) -> Phone:
        """Give the user a push token, and enrol it on a phone."""
        made = self.post("/token/init", {"type": "push", "user": user, "realm": REALM, "genkey": "1"})["detail"]
        return Phone(self.client, made["serial"], made["enrollment_credential"])

    def challenges(self) -> list[str]:
        """Return the serial of each token that has a challenge, each serial once."""
        return [challenge["serial"] for challenge in self._listed("/token/challenges/", "challenges")]

    def failures(self, user: str) -> int:
        """Return the failure counter of the user's tokens."""
        return sum(int(token["failcount"]) for token in self._listed("/token/", "tokens", user=user, realm=REALM))

    def asked(self, user: str) -> list[str]:
        """Return the requests about a user from the server's audit, such as `POST /validate/check`, newest first."""
        return [entry["action"] for entry in self._listed("/audit/", "auditdata", user=user)]

    def _listed(self, path: str, name: str, **params: str) -> list[dict[str, str]]:
        value = self.get(path, pagesize="500", page_size="500", **params)
        assert isinstance(value, dict)
        entries: list[dict[str, str]] = value[name]
        return entries

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
