"""MS-CHAPv2 logins at Sallyport and at FreeRADIUS with rlm_mschap, with and without recording. All get the same load in
turn.

Both check the response against a password in clear text, and answer with the proof that they know it and the keys of
MPPE. Every request of a user has the same challenge and response, which are made before the measurement starts.
Everything else is as in the benchmark `radius`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from sallyport.radius.mschap import MsChap2, challenge_response, nt_hash, push_attempt

from .child import Running
from .freeradius import Extras, count_events, create_database, records, run_freeradius
from .radius import OURS, PLAIN, RECORDING, USERS, Server, aims, figures, measure
from .radiusd import version
from .sallyport import sallyport
from .settings import Settings
from .spread import compared

MODULE = """\
    mschap {
    }
"""


def run(settings: Settings) -> str:
    """Measure all chosen servers and return Markdown. Raises BenchmarkError if a server does not start or the
    comparison is void.
    """
    with NamedTemporaryFile("w", prefix="bench-", dir=settings.directory) as file:
        file.writelines(f"{proof(f'user{number}', f'pass{number}').hex()}\n" for number in range(USERS))
        file.flush()
        results, names = measure(SERVERS, settings, "-c", file.name)
    return "\n\n".join([_introduction(settings), figures(results, names), *compared(aims(results))])


def proof(user: str, password: str) -> bytes:
    """Return the attributes of an MS-CHAPv2 login that can be sent repeatedly (RFC 2548 section 2.3)."""
    attempt = MsChap2(1, bytes(range(16)), bytes(range(16, 32)), b"")
    response = challenge_response(attempt.nt_challenge(user.encode()), nt_hash(password.encode()))
    return push_attempt(attempt._replace(response=response))


@contextmanager
def mschap_freeradius(directory: Path, *, recording: bool) -> Iterator[Running]:
    """Run FreeRADIUS with rlm_mschap."""
    database = directory / "events.db"
    extras = Extras()
    if recording:
        create_database(database)
        extras = records(database)
    extras = replace(extras, method="mschap", modules=extras.modules + MODULE)
    with run_freeradius(directory, users=USERS, extras=extras) as (port, process):
        name = "FreeRADIUS, recording" if recording else "FreeRADIUS, nothing recorded"
        yield Running(name, port, process, partial(count_events, database) if recording else None)


SERVERS = (
    Server(PLAIN, partial(mschap_freeradius, recording=False)),
    Server(RECORDING, partial(mschap_freeradius, recording=True)),
    Server(OURS, partial(sallyport, users=USERS)),
)


def _introduction(settings: Settings) -> str:
    return (
        f"MS-CHAPv2 logins with Message-Authenticator against {version()}; {settings.rounds} round(s), each of "
        f"at most {settings.seconds:g} s. Recording: a device upsert and an event a login, on disk before the answer."
    )
