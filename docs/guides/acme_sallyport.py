"""MFA providers for an approval service: POST /prompts asks the user, GET /prompts/ID returns the answer. POST /codes
checks a code.
"""

from typing import ClassVar
from urllib.parse import quote

from pydantic import Field

from sallyport.plugins import (
    Answer,
    Code,
    Enrolment,
    Fields,
    Host,
    Outcome,
    ProviderError,
    Question,
    SecretKey,
    ServerUrl,
    json_object,
    text_at,
)

ENROLMENTS = {"enrolled": Enrolment.ENROLLED, "unknown": Enrolment.NOT_ENROLLED}
POLLED = {"waiting": Outcome.WAITING, "approved": Outcome.APPROVED, "denied": Outcome.DENIED}
STARTED = POLLED | {"unknown": Outcome.NOT_ENROLLED}
VERIFIED = {"approved": Outcome.APPROVED, "wrong": Outcome.WRONG_CODE, "unknown": Outcome.NOT_ENROLLED}


class AcmeFields(Fields):
    """The configuration, which `provider set` stores."""

    url: ServerUrl = Field(description="URL of the approval service.")
    token: SecretKey = Field(description="Token of the approval service.")


class Acme:
    """A provider that sends a push."""

    name: ClassVar[str] = "acme"
    fields: ClassVar[type[Fields]] = AcmeFields
    asks_for_codes: ClassVar[bool] = False

    def __init__(self, fields: AcmeFields, host: Host) -> None:
        self._client = host.http(fields.url, headers={"Authorization": f"Bearer {fields.token.get_secret_value()}"})

    async def enrolled(self, user: str) -> Enrolment:
        """Ask whether the service knows the user."""
        response = await self._client.get(f"/users/{quote(user, safe='')}")
        return ENROLMENTS.get(text_at(json_object(response), "status"), Enrolment.UNKNOWN)

    async def start(self, question: Question) -> Answer:
        """Prompt the user. The service sends one prompt for each id."""
        prompt = {"id": question.challenge_id, "user": question.user, "device": question.device}
        response = await self._client.post("/prompts", json=prompt)
        return _answer(STARTED, text_at(json_object(response), "status"), question.challenge_id)

    async def poll(self, handle: str) -> Answer:
        """Ask for the answer of the user."""
        response = await self._client.get(f"/prompts/{handle}")
        return _answer(POLLED, text_at(json_object(response), "status"), handle)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Return DENIED: this provider takes no codes."""
        return Answer(Outcome.DENIED)

    async def cancel(self, handle: str) -> None:
        """Withdraw the prompt."""
        await self._client.delete(f"/prompts/{handle}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class AcmeCodes(Acme):
    """A provider that asks for a code. The user types it after the password, or when the device asks for it."""

    name: ClassVar[str] = "acme-codes"
    asks_for_codes: ClassVar[bool] = True
    only_codes: ClassVar[bool] = True

    async def start(self, question: Question) -> Answer:
        """Ask for the code."""
        return Answer(Outcome.CODE, text="Code of your token")

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check the code. Other text, and a CHAP response, which the service cannot check, are wrong codes."""
        text = (code.text or "").strip()
        if not (text.isascii() and text.isdecimal()):
            return Answer(Outcome.WRONG_CODE)
        response = await self._client.post("/codes", json={"user": question.user, "code": text})
        return _answer(VERIFIED, text_at(json_object(response), "status"), "")

    async def cancel(self, handle: str) -> None:
        """Do nothing: there is no prompt."""


def _answer(outcomes: dict[str, Outcome], status: str, handle: str) -> Answer:
    if status not in outcomes:
        raise ProviderError(f"the service answered a status that is none of {', '.join(outcomes)}")
    return Answer(outcomes[status], handle=handle)
