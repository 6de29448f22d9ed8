"""The program `program.py`, which replaces ntlm_auth and is started like it."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
import trio

from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.first.winbind.protocol import Question
from sallyport.radius.mschap import challenge_response, nt_hash, nt_hash_hash

CHALLENGE = bytes(range(8))
KEY = nt_hash_hash(nt_hash(b"hello"))


@dataclass(frozen=True)
class Program:
    """The program, in a directory of its own."""

    path: Path

    @property
    def started(self) -> list[int]:
        """Return the id of each process that was started."""
        file = self.path.with_name("started")
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def asked(self) -> list[str]:
        """Return the questions that the program received, each as a Python literal."""
        return self.path.with_name("asked").read_text().splitlines()

    @property
    def alive(self) -> list[int]:
        """Return the ids of the processes that run."""
        return [number for number in self.started if Path(f"/proc/{number}").exists()]


Running: TypeAlias = Callable[..., AbstractAsyncContextManager[Helpers]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program. It knows that ann's password is hello."""
    path = tmp_path / "ntlm_auth"
    path.write_text(f"#!{sys.executable} -IS\n" + Path(__file__).with_name("program.py").read_text())
    path.chmod(0o755)
    response = challenge_response(CHALLENGE, nt_hash(b"hello"))
    path.with_name("right").write_text(f"ann {CHALLENGE.hex()} {response.hex()} {KEY.hex()}\n")
    return Program(path)


@pytest.fixture
def running(program: Program) -> Running:
    """Return a function that runs `Helpers` until the block ends, and then asserts that no process is left."""

    @asynccontextmanager
    async def run(**options: float) -> AsyncIterator[Helpers]:
        helpers = Helpers(program.path, **options)  # type: ignore[arg-type]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(helpers.run)
            yield helpers
            nursery.cancel_scope.cancel()
        assert program.alive == []

    return run


def question(user: str = "ann", password: str = "hello") -> Question:  # noqa: S107
    """Return the question for a user who typed this password."""
    return Question(user, "", CHALLENGE, challenge_response(CHALLENGE, nt_hash(password.encode())))
