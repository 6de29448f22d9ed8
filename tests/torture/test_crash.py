"""Tests of a crash at any moment: each answer that a client received is stored, and a retransmission gets it again.

The service is killed with SIGKILL during a load of logins and accounting. It is then started with the same data
directory and the same ports. `test_trace` tests that the written data had also reached the disk.
"""

import time
from pathlib import Path
from random import Random

import pytest

from sallyport.areas.login.journal import PURGE_S
from tests.running_service import RunningService
from tests.soak.programs import Shim, compile_shim
from tests.torture.load import Load, check_stored, populate

ROUNDS = 20
ENOUGH = 100  # answers before a kill
SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0.1"}

pytestmark = pytest.mark.torture


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    """Each answer that a client received is in the store with its device, and a retransmission gets the same octets."""
    random = Random(20)
    service = RunningService(tmp_path, SETTINGS)
    try:
        service.start()
        populate(service)
        checked = [kill_and_check(service, f"r{number:02}", random) for number in range(ROUNDS)]
        assert service.stop() == 0
    finally:
        service.kill()
    print(f"{sum(checked)} answered requests compared over {ROUNDS} kills")
    assert min(checked) >= ENOUGH, checked
    assert "exception" not in service.log()


def test_a_clock_that_was_set_forgets_no_answer(tmp_path: Path) -> None:
    """A retransmission after a kill gets the same octets, if the clock of the day was set meanwhile and set right."""
    data = tmp_path / "service" / "data"
    data.parent.mkdir()
    shim = Shim(data)
    preloaded = {**SETTINGS, **shim.environ, "LD_PRELOAD": str(compile_shim(tmp_path))}
    service = RunningService(data.parent, preloaded, fresh=True)
    try:
        service.start()
        populate(service)
        random = Random(20)
        with Load(service, "a", random) as before, Load(service, "b", random) as meanwhile:
            _answered(before)
            shim.set_clock(3600)
            _answered(meanwhile)
            time.sleep(PURGE_S + 1)
            shim.set_clock(0)
            service.kill()
            service.start()
            for load in (before, meanwhile):
                for each, reply in load.again(load.answered, seconds=20):
                    assert reply == each.reply, f"another answer to the retransmit of {each.station}"
                check_stored(service, load.prefix, load.answered)
        assert service.stop() == 0
    finally:
        service.kill()


def _answered(load: Load) -> None:
    """Send for a short time, and then until ENOUGH requests are answered."""
    load.run(0.2)
    while len(load.answered) < ENOUGH:  # on a slow machine
        load.run(0.1)
    load.drain()


def kill_and_check(service: RunningService, prefix: str, random: Random) -> int:
    """Run one round. Return the number of answered requests that were compared."""
    with Load(service, prefix, random) as load:
        load.run(random.uniform(0.25, 0.6))
        while len(load.answered) < ENOUGH:  # on a slow machine
            load.run(0.1)
        service.kill()
        load.drain()
        answered = load.answered
        service.start()
        assert service.rows("pragma integrity_check") == [("ok",)]
        check_stored(service, prefix, answered)
        for each, reply in load.again(answered, seconds=20):
            assert reply == each.reply, f"another answer to the retransmit of {each.station}"
        unanswered = [each for each in load.sent if each.reply is None]
        load.again(unanswered, seconds=20)
        check_stored(service, prefix, load.sent)
    return len(answered)
