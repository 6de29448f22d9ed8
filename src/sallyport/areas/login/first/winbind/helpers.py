"""Run the ntlm_auth processes. A process is started on demand, answers one question at a time, and is ended after it
has been idle for a while.

A process that hangs or violates the protocol is killed. Otherwise its late answer could be taken for the answer to
another login.
"""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

import trio

from sallyport.areas.login.first.winbind.protocol import (
    ARGUMENTS,
    Nonsense,
    NtlmAnswer,
    Question,
    pull_answer,
    push_question,
)
from sallyport.settings.values import PREFIX

MAX_HELPERS: Final = 16
PATIENCE_S: Final = 10.0
IDLE_S: Final = 60.0
PING_S: Final = 2.0
_MAX_ANSWER: Final = 65_536


class Unanswered(Exception):
    """A question that ntlm_auth has not answered. The message contains the reason."""


class Helpers:
    """The ntlm_auth processes. `run` ends idle processes, and all processes when it is cancelled.

    program: the path of ntlm_auth; a change applies to the next question. most: the maximum number of processes.
    patience_s: the time limit of a question in seconds, including the wait for a free process.
    """

    def __init__(
        self, program: Path, *, most: int = MAX_HELPERS, patience_s: float = PATIENCE_S, idle_s: float = IDLE_S
    ) -> None:
        self.program = program
        self._turns = trio.Semaphore(most)
        self._patience_s = patience_s
        self._idle_s = idle_s
        self._idle: list[_Helper] = []  # a stack, in which the processes at the front have been idle longest

    async def run(self) -> None:
        """End processes that have been idle for too long, until cancelled."""
        try:
            while True:
                await trio.sleep(self._idle_s / 2)
                await self._end(before=trio.current_time() - self._idle_s)
        finally:
            await self._end(before=trio.current_time())

    async def ask(self, question: Question) -> NtlmAnswer:
        """Ask ntlm_auth one question, and return the answer. Raises Unanswered if ntlm_auth fails or does not answer in
        time."""
        try:
            with trio.fail_after(self._patience_s):
                async with self._turns:
                    return await self._ask(question)
        except trio.TooSlowError:
            raise Unanswered(f"{self.program} gave no answer within {self._patience_s:g} s") from None
        except Nonsense as error:
            raise Unanswered(f"{self.program} does not speak the protocol ntlm-server-1: {error}") from None
        except OSError as error:
            raise Unanswered(f"{self.program} cannot be run: {error.strerror}") from None
        except (trio.BrokenResourceError, EOFError):
            raise Unanswered(f"{self.program} ended before it sent an answer") from None

    async def ping(self) -> bool | None:
        """Return whether winbindd answers `wbinfo --ping`, or None if `wbinfo` cannot be run or does not end in time.
        `wbinfo` needs no privilege. It is expected in the directory of ntlm_auth."""
        command = [str(self.program.with_name("wbinfo")), "--ping"]
        with trio.move_on_after(PING_S):
            try:
                ended = await trio.run_process(command, stdout=DEVNULL, stderr=DEVNULL, check=False, env=_environment())
            except OSError:
                return None
            return ended.returncode == 0
        return None

    async def _ask(self, question: Question) -> NtlmAnswer:
        helper = await self._take()
        answer = None
        try:
            answer = await helper.ask(question)
        finally:
            if answer is None:
                await helper.end()
        helper.idle_since = trio.current_time()
        self._idle.append(helper)
        return answer

    async def _take(self) -> _Helper:
        while self._idle:
            helper = self._idle.pop()
            if helper.is_alive and helper.program == self.program:
                return helper
            await helper.end()
        return await _Helper.start(self.program)

    async def _end(self, *, before: float) -> None:
        """End the processes that have been idle since `before` or longer."""
        while self._idle and self._idle[0].idle_since <= before:
            await self._idle.pop(0).end()


class _Helper:
    def __init__(self, process: trio.Process, program: Path) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101  `start` asked for both
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self.program = program
        self.idle_since = 0.0

    @classmethod
    async def start(cls, program: Path) -> _Helper:
        """Start a process. Raises OSError."""
        command = [str(program), *ARGUMENTS]
        return cls(
            await trio.lowlevel.open_process(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=_environment()),
            program,
        )

    @property
    def is_alive(self) -> bool:
        """Return whether the process is still running."""
        return self._process.poll() is None

    async def ask(self, question: Question) -> NtlmAnswer:
        """Ask a question, and return the answer. Raises Nonsense, EOFError, trio.BrokenResourceError.

        If the call raises or is cancelled, the caller must call `end`.
        """
        await self._stdin.send_all(push_question(question))
        received = b""
        while len(received) <= _MAX_ANSWER:
            chunk = await self._stdout.receive_some()
            if not chunk:
                raise EOFError
            received += chunk
            answer = pull_answer(received)
            if answer is not None:
                return answer
        raise Nonsense("its answer does not end")

    async def end(self) -> None:
        """Kill the process, and wait until it has ended."""
        with trio.CancelScope(shield=True):
            self._process.kill()
            await self._process.wait()
            await self._stdin.aclose()
            await self._stdout.aclose()


def _environment() -> dict[str, str]:
    """Return the environment for ntlm_auth. The settings of this service are removed, because they may contain the
    master key."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
