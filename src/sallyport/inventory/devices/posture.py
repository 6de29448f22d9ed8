"""A device's posture: what an admin must know of it before signatures are required or a second factor is enforced.

Counted from its logins: how many were signed, when it last sent one that was not, whether it proxied unsigned ones,
and whether it answers challenges. Measured while it waits: how often it repeats itself, and when it gives up.
"""

from dataclasses import dataclass, fields

from sallyport.base.clock import SECOND
from sallyport.radius.attributes import PROXY_STATE
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import Request
from sallyport.store.model import Tx

QUIET_US = 7 * 86_400 * SECOND
"""Without an unsigned login for so long, a device is taken to sign."""
UNANSWERED = 3
"""So many challenges without one answer: the device cannot show them."""


@dataclass(slots=True)
class Posture:
    """What was counted since the last flush, and the last measurements. Times in microseconds or as named."""

    signed: int = 0
    unsigned: int = 0
    unsigned_proxied: int = 0
    last_unsigned: int | None = None
    challenges: int = 0
    challenge_answers: int = 0
    retransmit_ms: int | None = None
    give_up_ms: int | None = None
    takes_challenges: bool = False

    def count(self, request: Request, at: int) -> None:
        """A login of the device."""
        if request.signed:
            self.signed += 1
        else:
            self.unsigned += 1
            self.last_unsigned = at
            if PROXY_STATE in request.first:
                self.unsigned_proxied += 1

    def measure(self, known: Entry, now: float) -> None:
        """A login that waited has its answer now (seconds of the monotonic clock): how the device bore the waiting.

        It has given up where it was silent for clearly longer than between its last two repetitions. The longest such
        time counts: a user who cancels does not make the device less patient.
        """
        if known.gap <= 0:
            return
        self.retransmit_ms = int(known.gap * 1000)
        if now - known.last > 1.5 * known.gap + 0.5:
            self.give_up_ms = max(self.give_up_ms or 0, int((known.last - known.first + known.gap) * 1000))

    def take(self) -> "Posture":
        """What is to be flushed; from here on it counts anew. The measurements stay."""
        taken = Posture(*(getattr(self, each.name) for each in fields(self)))
        self.signed = self.unsigned = self.unsigned_proxied = self.challenges = self.challenge_answers = 0
        return taken

    def put_back(self, taken: "Posture") -> None:
        """It could not be written."""
        self.signed += taken.signed
        self.unsigned += taken.unsigned
        self.unsigned_proxied += taken.unsigned_proxied
        self.challenges += taken.challenges
        self.challenge_answers += taken.challenge_answers


class Judged:
    """What the counts of a posture say."""

    __slots__ = ()
    signed: int
    unsigned: int
    last_unsigned: int | None
    challenges: int
    challenge_answers: int

    @property
    def signed_share(self) -> float | None:
        """The part of its logins that were signed, 0 to 1; None without any."""
        seen = self.signed + self.unsigned
        return round(self.signed / seen, 4) if seen else None

    def safe_to_require(self, now: int) -> bool:
        """Whether Message-Authenticator can be required of it without turning it away."""
        return self.signed > 0 and (self.last_unsigned is None or now - self.last_unsigned > QUIET_US)

    @property
    def challenge_support(self) -> str:
        """Whether it shows challenges to its users: yes, no or unknown."""
        if self.challenge_answers:
            return "yes"
        return "no" if self.challenges >= UNANSWERED else "unknown"


@dataclass(frozen=True, slots=True)
class PostureRow(Judged):
    """A device's posture since it registered."""

    device_id: int
    signed: int
    unsigned: int
    unsigned_proxied: int
    last_unsigned: int | None
    challenges: int
    challenge_answers: int
    retransmit_ms: int | None
    give_up_ms: int | None


def nothing_known(device_id: int) -> PostureRow:
    """The posture of a device that has not logged anybody in."""
    return PostureRow(device_id, 0, 0, 0, None, 0, 0, None, None)


_COLUMNS = ", ".join(PostureRow.__dataclass_fields__)


def flush(tx: Tx, device_id: int, taken: Posture) -> None:
    """Add what was counted, and keep what was measured."""
    tx.execute(
        f"insert into device_posture ({_COLUMNS}) values (:id, :signed, :unsigned, :proxied, :last, :challenges, "  # noqa: S608
        ":answers, :retransmit, :give_up) on conflict (device_id) do update set "
        "signed = device_posture.signed + excluded.signed, unsigned = device_posture.unsigned + excluded.unsigned, "
        "unsigned_proxied = device_posture.unsigned_proxied + excluded.unsigned_proxied, "
        "last_unsigned = coalesce(excluded.last_unsigned, device_posture.last_unsigned), "
        "challenges = device_posture.challenges + excluded.challenges, "
        "challenge_answers = device_posture.challenge_answers + excluded.challenge_answers, "
        "retransmit_ms = coalesce(excluded.retransmit_ms, device_posture.retransmit_ms), "
        "give_up_ms = coalesce(excluded.give_up_ms, device_posture.give_up_ms)",
        id=device_id,
        signed=taken.signed,
        unsigned=taken.unsigned,
        proxied=taken.unsigned_proxied,
        last=taken.last_unsigned,
        challenges=taken.challenges,
        answers=taken.challenge_answers,
        retransmit=taken.retransmit_ms,
        give_up=taken.give_up_ms,
    )


def find(tx: Tx, device_id: int) -> PostureRow:
    """A device's posture."""
    row = tx.one(PostureRow, f"select {_COLUMNS} from device_posture where device_id = :id", id=device_id)  # noqa: S608
    return row or nothing_known(device_id)
