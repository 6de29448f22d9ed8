"""Tests of the ntlm_auth processes: their limit, one question at a time, replacement after a failure, and their end
when idle."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import trio

from sallyport.areas.login.first.winbind.helpers import Helpers, Unanswered
from sallyport.settings.values import MASTER_KEY
from tests.areas.login.first.winbind.conftest import KEY, Program, Running, question
from tests.waiting import until


async def test_one_process_answers_one_after_the_other(running: Running, program: Program) -> None:
    """One process answers right and wrong responses in turn.

    The second dot after a refusal does not shift the later answers.
    """
    async with running() as helpers:
        for password, key in (("hello", KEY), ("wrong", None), ("wrong", None), ("hello", KEY), ("hello", KEY)):
            assert (await helpers.ask(question(password=password))).key == key
        assert len(program.started) == 1


async def test_a_name_ends_no_line(running: Running, program: Program) -> None:
    """A name that contains line ends reaches the program unchanged, in one question."""
    async with running() as helpers:
        name = "bob\n.\nUsername: ann\r\n\0 ü: ::"
        assert (await helpers.ask(question(name))).key is None
        assert [eval(line)["Username"] for line in program.asked] == [name]  # noqa: S307  the test's own file


@pytest.mark.parametrize("user", ["dies", "lies", "endless", "keyless"])
async def test_a_failed_process_is_replaced(running: Running, program: Program, user: str) -> None:
    """A process that fails is killed. Its question is not sent again, and the next question gets a new process."""
    async with running() as helpers:
        with pytest.raises(Unanswered, match=r"ntlm_auth (ended|does not speak)"):
            await helpers.ask(question(user))
        assert program.alive == []
        assert (await helpers.ask(question())).key == KEY
        assert len(program.asked) == 2


async def test_a_process_that_hangs_is_killed(running: Running, program: Program) -> None:
    """A process that does not answer within the time limit is killed."""
    async with running(patience_s=3) as helpers:
        with pytest.raises(Unanswered, match="no answer within 3 s"):
            await helpers.ask(question("hangs"))
        assert program.alive == []
        assert (await helpers.ask(question())).key == KEY


async def test_a_login_that_is_given_up_takes_its_process_along(running: Running, program: Program) -> None:
    """If a login is cancelled, its process is killed, because its answer could be taken for the answer to the next
    question."""
    async with running() as helpers:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(helpers.ask, question("hangs"))
            await until(lambda: len(program.started) == 1 and program.path.with_name("asked").exists())
            nursery.cancel_scope.cancel()
        assert program.alive == []
        assert (await helpers.ask(question())).key == KEY


async def test_the_number_of_processes_is_limited(running: Running, program: Program) -> None:
    """If the maximum number of processes is running, later questions wait for their turn. All of them are answered."""
    answered: list[bytes | None] = []
    async with running(most=2) as helpers:

        async def ask() -> None:
            answered.append((await helpers.ask(question("slow"))).key)

        async with trio.open_nursery() as nursery:
            for _ in range(7):
                nursery.start_soon(ask)
    assert answered == [bytes.fromhex("AB" * 16)] * 7
    assert len(program.started) <= 2


async def test_a_wait_for_a_turn_is_limited(running: Running, program: Program) -> None:
    """If a question waits too long for its turn, Unanswered is raised and no process is started."""
    async with running(most=1, patience_s=0.1) as helpers, helpers._turns:
        with pytest.raises(Unanswered):
            await helpers.ask(question())
        assert program.started == []


async def test_idle_processes_end(running: Running, program: Program) -> None:
    """An idle process is ended, and a later login starts a new one."""
    async with running(idle_s=0.2) as helpers:
        await helpers.ask(question())
        await until(lambda: program.alive == [])
        assert (await helpers.ask(question())).key == KEY
        assert len(program.started) == 2


async def test_a_process_that_ended_while_idle_is_replaced(running: Running, program: Program) -> None:
    """If a process ended while it was idle, for example after an update of Samba, it is replaced and no login fails."""
    async with running() as helpers:
        await helpers.ask(question())
        os.kill(program.started[0], signal.SIGKILL)
        helper = helpers._idle[0]
        await until(lambda: not helper.is_alive)
        assert (await helpers.ask(question())).key == KEY


async def test_another_program_answers_the_next_question(running: Running, program: Program) -> None:
    """An idle process of the former program is ended, and is asked nothing more."""
    other = program.path.with_name("other")
    shutil.copy2(program.path, other)
    async with running() as helpers:
        await helpers.ask(question())
        helpers.program = other
        assert (await helpers.ask(question())).key == KEY
        (alive,) = program.alive
        assert str(other).encode() in Path(f"/proc/{alive}/cmdline").read_bytes().split(b"\0")


async def test_processes_get_no_setting_of_the_service(running: Running, program: Program) -> None:
    """The processes get no settings of the service, because the master key may be among them."""
    os.environ[MASTER_KEY] = "00" * 32
    try:
        async with running() as helpers:
            await helpers.ask(question())
            seen = Path(f"/proc/{program.started[0]}/environ").read_bytes()
    finally:
        del os.environ[MASTER_KEY]
    assert b"PATH=" in seen
    assert b"SALLYPORT" not in seen


async def test_without_the_program_each_question_is_unanswered(program: Program) -> None:
    """If the program is missing, the error names it."""
    program.path.unlink()
    with pytest.raises(Unanswered, match=r"ntlm_auth cannot be run: No such file"):
        await Helpers(program.path).ask(question())
