"""The provider for the user's wallet. A login opens a presentation request. The login is approved if the wallet
presents a matching credential.

The provider makes no connections. The wallet polls for the request, and submits its presentation, over the API of any
node. The presentation wakes the waiting login. A user is enrolled if the user holds a valid credential of the
configured issuer and, if set, of the configured schema. A valid credential is not revoked, ignored or expired. A
request belongs to one login (`challenge_id`), so that each approval admits one login. The request is withdrawn at the
end of the login.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sallyport.areas.mfa.fields import Fields, WalletFields
from sallyport.areas.mfa.host import Host, WalletAnswer
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question

PATIENCE_S: Final = 25.0
"""Time in seconds for which a poll waits for the wallet. It is less than the deadline of the login path."""
_OUTCOMES: Final[dict[WalletAnswer, Outcome]] = {
    "accepted": Outcome.APPROVED,
    "declined": Outcome.NOT_ME,
    "withdrawn": Outcome.DENIED,
    "expired": Outcome.UNANSWERED,
}
_TEXT: Final = "Approve in your wallet, then press Enter"


class Wallet:
    """The provider for the users' wallets."""

    name: ClassVar[str] = "wallet"
    fields: ClassVar[type[Fields]] = WalletFields
    asks_for_codes: ClassVar[bool] = False
    most_calls: ClassVar[int] = 100_000  # a call waits for the user, and takes no connection

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, WalletFields)  # noqa: S101  the caller made it with `fields`
        self._issuer = fields.issuerDid
        self._schema = fields.schemaId or 0
        self._host = host

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user holds a matching credential."""
        holds = await self._host.wallets.enrolled(self._host.domain_id, user, self._issuer, self._schema)
        return Enrolment.ENROLLED if holds else Enrolment.NOT_ENROLLED

    async def check(self) -> str:
        """Return a text that says that no server is asked."""
        return "wallets ask this service; no server is asked"

    async def start(self, question: Question) -> Answer:
        """Open a presentation request. The wallet polls for such requests."""
        where = question.device if question.device in {"", question.source} else f"{question.device}, {question.source}"
        request_id = await self._host.wallets.open(
            question.domain_id,
            question.user,
            self._issuer,
            self._schema,
            challenge_id=question.challenge_id,
            purpose=f"Login of {question.user} at {where or question.source} ({question.domain})",
            expires_at=question.expires_at,
        )
        if request_id is None:
            return Answer(Outcome.NOT_ENROLLED)
        return Answer(Outcome.WAITING, handle=str(request_id), text=_TEXT, again_s=0.0)

    async def poll(self, handle: str) -> Answer:
        """Wait for the wallet's answer. A withdrawn request counts as denied."""
        answer = await self._host.wallets.answer(_number(handle), within_s=PATIENCE_S)
        if answer is None:
            return Answer(Outcome.WAITING, handle=handle, text=_TEXT, again_s=0.0)
        return Answer(_OUTCOMES[answer], handle=handle)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Return DENIED, because a wallet has no codes."""
        return Answer(Outcome.DENIED, text="codes are not used here")

    async def cancel(self, handle: str) -> None:
        """Withdraw the request, so that a later presentation is refused."""
        await self._host.wallets.withdraw(_number(handle))

    async def aclose(self) -> None:
        """Do nothing, because there are no connections."""


def _number(handle: str) -> int:
    if not (handle.isascii() and handle.isdecimal() and len(handle) < 19):
        raise ProviderError("the handle names no presentation request")
    return int(handle)
