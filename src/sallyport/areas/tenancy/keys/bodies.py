"""Request and response bodies of the operations of API keys."""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from sallyport.areas.tenancy.keys.key import MAX_USES, Agent, KeyRecord
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between, Moment, unfit
from sallyport.settings.types import base_url
from sallyport.web.bodies import (
    Flag,
    Id,
    LongText,
    Many,
    OfDomain,
    Paged,
    PlainText,
    ScopedIfGiven,
    Text,
    TotalCount,
    Whole,
)

KeyName = Annotated[PlainText, Field(max_length=64)]


def _base(value: str) -> str:
    try:
        return base_url(value)
    except ValueError:
        raise unfit("must be a URL such as https://sallyport.example.com") from None


BaseUrl = Annotated[LongText, AfterValidator(_base)]
Uses = Annotated[Whole, Between(1, MAX_USES)]
KeyHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""The SHA-256 of a key in hexadecimal."""
KeyId = Annotated[int, Field(description="Id of the key.")]
KeyDomain = Annotated[int, Field(description="Id of the key's domain.")]
KeyInstance = Annotated[
    int | None, Field(description="Id of the key's instance. Null if the key is for the whole domain.")
]
ExpiresAt = Annotated[str, Field(description="Time when the key expires, ISO 8601 UTC.")]


class CreateKey(OfDomain):
    """Request body of the operation `createKey`, which creates an enrolment key for a domain or for one instance of the
    domain.

    The fields `service`, `directoryName`, `servers`, `baseDN`, `bindDN` and `startTls` set values in the configuration
    file of the agent, which the response contains.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"domainId": 1, "name": "web servers", "uses": 20, "agent": "endpoint"}]}
    )

    instanceId: Id | None = Field(
        default=None,
        description=(
            "Id of the only instance that may enrol with the key. If it is absent, any instance of the domain may "
            "enrol."
        ),
    )
    name: KeyName | None = Field(default=None, description="Name of the key.")
    expiresAt: Moment | None = Field(
        default=None, description="Time when the key expires, ISO 8601. The default is 30 days from now."
    )
    uses: Uses | None = Field(
        default=None,
        description="Maximum number of machines that may enrol with the key. If it is absent, there is no limit.",
    )
    agent: Agent = Field(default=Agent.ENDPOINT, description="Kind of agent that uses the key.")
    service: BaseUrl | None = Field(
        default=None, description="URL at which the agent reaches the service. The default is the setting public_url."
    )
    directoryName: Text | None = Field(
        default=None, description="Name of the directory. The default is the name of the domain."
    )
    servers: Annotated[Many[LongText], Field(max_length=8)] = Field(
        default_factory=list,
        description="URLs of the directory's servers. The default is the servers of the domain's first factor.",
    )
    baseDN: LongText | None = Field(
        default=None, description="Base DN of the directory. The default is the base DN of the domain's first factor."
    )
    bindDN: LongText | None = Field(
        default=None, description="DN of the agent's account. The default is the account of the domain's first factor."
    )
    startTls: Flag | None = Field(
        default=None, description="Whether to use StartTLS. The default is the value of the domain's first factor."
    )


class KeyMade(Done):
    """Response body of the operation `createKey`: the new key and the agent's configuration file. The key is shown only
    once."""

    keyId: KeyId
    apiKey: str = Field(description="The enrolment key; it is not shown again.")
    expiresAt: ExpiresAt
    configuration: str = Field(description="Text of the agent's configuration file, with the key.")


class ListKeys(OfDomain, Paged):
    """Request body of the operation `listKeys`."""


@answer_of(KeyRecord)
class KeyEntry(Model):
    """An API key in a list, without its secret."""


class KeyList(Done):
    """Response body of the operation `listKeys`."""

    message: str = Field(default="Success", description="Result in words.")
    totalCount: TotalCount
    keys: list[KeyEntry] = Field(description="Keys of the page, ordered by keyId.")


class RevokeKey(OfDomain):
    """Request body of the operation `revokeKey`."""

    keyId: Id = Field(description="Id of the key, as listKeys returns it.")


class ExchangeKey(ScopedIfGiven):
    """Request body of the operation `exchangeKey`. It contains the hash of the agent's own key."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keyHash": "0" * 64, "instanceId": 7}]})

    keyHash: KeyHash = Field(description="SHA-256 (hexadecimal) of the key that the agent has generated for itself.")
    instanceId: Id | None = Field(
        default=None,
        description="Id of the endpoint agent's instance. It is required if the enrolment key is for a whole domain.",
    )


class RenewKey(ScopedIfGiven):
    """Request body of the operation `renewKey`. It contains the hash of the agent's next key."""

    keyHash: KeyHash = Field(description="SHA-256 (hexadecimal) of the agent's next key.")


class KeyKept(Done):
    """Response body of the operations `exchangeKey` and `renewKey`. It describes the registered key of the agent."""

    keyId: KeyId
    domainId: KeyDomain
    instanceId: KeyInstance
    expiresAt: ExpiresAt
    renewAt: str = Field(description="Time when the agent should renew the key, ISO 8601 UTC.")
    now: str = Field(description="Current time of the service, ISO 8601 UTC.")
