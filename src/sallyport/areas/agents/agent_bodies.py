"""The requests and answers of the operations that agents call: the registration, and the messages of agentwire."""

import json
import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from typing import Generic, TypeVar

from pydantic import (
    AliasChoices,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SkipValidation,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from sallyport.agentwire.report import Poll, PrivilegeStatus, Report, Rotation, rotation
from sallyport.areas.agents.machines import Machine, Registered
from sallyport.areas.agents.presence import HEARTBEAT_S
from sallyport.areas.users.instances.bodies import AddressText
from sallyport.areas.users.instances.instance import PRIVATE_ADDRESS, PUBLIC_ADDRESS, SYSTEM
from sallyport.base.errors import MISSING, FieldError, Invalid, WireError
from sallyport.base.model import FieldCheck, Model
from sallyport.base.wire import camel, decode
from sallyport.web.bodies import DomainId, Id, ScopedIfGiven, Text

MessageT = TypeVar("MessageT")
BodyT = TypeVar("BodyT", bound=Model)
_SCOPE = ("orgId", "tenantId")
_INDEX = re.compile(r"\[\d+\]")


class AddMachine(ScopedIfGiven):
    """Request body of the operations add-machine and add-instance. Some fields have several accepted names."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"machineKey": "spk_...", "osId": 1, "publicIpAddress": "203.0.113.7", "privateIpAddress": "10.0.0.7"},
                {"domainId": 1, "instanceName": "web-1", "osId": 1, "publicIp": "", "privateIp": "10.0.0.7"},
            ]
        }
    )

    domainId: DomainId | None = Field(default=None, validation_alias=AliasChoices("domainId", "domain_id"))
    machineKey: Text = Field(default="", description="API key that authorizes the request, as createKey returns it.")
    instanceName: Text = Field(
        default="",
        validation_alias=AliasChoices("instanceName", "instance_name"),
        description="Name of the instance. If it is empty, an address of the machine becomes the name.",
    )
    osId: Id = Field(default=0, validation_alias=AliasChoices("osId", "os_id"), description=SYSTEM)
    publicIp: AddressText = Field(
        default="",
        validation_alias=AliasChoices("publicIpAddress", "publicIp", "public_ip"),
        description=PUBLIC_ADDRESS,
    )
    privateIp: AddressText = Field(
        default="",
        validation_alias=AliasChoices("privateIpAddress", "privateIp", "private_ip"),
        description=PRIVATE_ADDRESS,
    )
    hostName: Text = Field(default="", description="Host name of the machine.")
    machineId: Text = Field(default="", description="Stable id of the machine, independent of its name and addresses.")
    agentVersion: Text = Field(default="", description="Version of the agent's program.")

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, value: object) -> object:
        """Drop empty and null values, so that they do not overwrite values of an earlier registration."""
        if not isinstance(value, dict):
            return value
        return {name: each for name, each in value.items() if each is not None and each != ""}

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)

    def claimed_key(self) -> str | None:
        return self.machineKey or None

    @property
    def machine(self) -> Machine:
        """The machine that registers."""
        return Machine(
            self.machineId,
            self.instanceName,
            self.osId,
            self.publicIp,
            self.privateIp,
            self.hostName,
            self.agentVersion,
        )


class MachineAdded(Model):
    """Response body of the operation add-machine."""

    instanceId: str = Field(description="Id of the instance.")
    code: str = Field(default="200", description="HTTP status of the answer.")
    message: str = Field(description="Result in words.")
    domainId: DomainId
    stateKey: str = Field(
        description="Ed25519 public key (base64) with which the agent verifies desired states. It is empty if the "
        "request used an access token."
    )
    heartbeatSeconds: int = Field(
        default=HEARTBEAT_S, description="Longest time between two requests of an agent, in seconds."
    )

    @classmethod
    def of(cls, made: Registered) -> "MachineAdded":
        """Return the answer to a registration."""
        return cls(
            instanceId=str(made.instance_id),
            message="machine added" if made.is_new else "machine known",
            domainId=made.domain_id,
            stateKey=b64encode(made.state_key).decode(),
        )


class AgentMessage(ScopedIfGiven, ABC, Generic[MessageT]):
    """The body of a request in which an agent sends a message of agentwire. `reader` decodes and validates the
    message."""

    message: SkipValidation[MessageT]

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema of the body: orgId, tenantId, and the message's fields in camelCase."""
        body = handler.resolve_ref_schema(handler(schema))
        message = handler.resolve_ref_schema(body["properties"].pop("message"))
        _spell_as_sent(message, handler)
        body["properties"] |= message["properties"]
        body["required"] = message.get("required", [])
        return body

    @classmethod
    @abstractmethod
    def reader(cls, value: object, *, strict: bool) -> MessageT:
        """Decode a JSON value into the message. strict: whether unknown fields are errors.

        Raises WireError if a value is invalid. The error contains the name of the field, but never the value.
        """

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, dict):
            return value
        scope = {name: value.get(name) for name in _SCOPE}
        sent = {name: each for name, each in value.items() if name not in scope}
        try:
            return {
                **scope,
                "message": cls.reader(sent, strict=isinstance(info.context, FieldCheck) and info.context.refuses),
            }
        except WireError as error:
            path, _, reason = str(error).partition(": ")
            name = _INDEX.sub("", path).rpartition(".")[2]
            kind = "missing" if reason == MISSING else "invalid"
            wrong = FieldError(path, reason)
            raise Invalid(f"{kind} {name}", (wrong,)) from None


def _described(body: type[BodyT]) -> type[BodyT]:
    """Take the descriptions of a message's fields from the docstrings of its attributes, when the schema is built. As a
    setting in the class body, pydantic would read the source for docstrings of the body's own fields as well, which
    takes a tenth of a second of each start.
    """
    body.model_config["use_attribute_docstrings"] = True
    return body


def _spell_as_sent(schema: JsonSchemaValue, handler: GetJsonSchemaHandler) -> None:
    """Change the JSON schema of a message: rename the fields to camelCase, also the fields of nested messages."""
    for part in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("properties", {}).values()):
        if part:
            _spell_as_sent(handler.resolve_ref_schema(part), handler)
    if "properties" in schema:
        schema["properties"] = {camel(name): field for name, field in schema["properties"].items()}
        schema["required"] = [camel(name) for name in schema.get("required", ())]


@_described
class PollBody(AgentMessage[Poll]):
    """Request body of the operation `desiredState`. It contains the message `agentwire.Poll`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": 0, "waitS": 50}]})

    @classmethod
    def reader(cls, value: object, *, strict: bool) -> Poll:
        return decode(Poll, value, strict=strict)


@_described
class ReportBody(AgentMessage[Report]):
    """Request body of the operation `report`. It contains the message `agentwire.Report`."""

    @classmethod
    def reader(cls, value: object, *, strict: bool) -> Report:
        return decode(Report, value, strict=strict)


@_described
class PrivilegesBody(AgentMessage[PrivilegeStatus]):
    """Request body of the operation `privilegeStatus`. It contains the message `agentwire.PrivilegeStatus`."""

    @classmethod
    def reader(cls, value: object, *, strict: bool) -> PrivilegeStatus:
        return decode(PrivilegeStatus, value, strict=strict)


@_described
class RotationBody(AgentMessage[Rotation]):
    """Request body of the operation `rotation`. It contains the message `agentwire.Rotation`."""

    @classmethod
    def reader(cls, value: object, *, strict: bool) -> Rotation:
        return rotation(json.dumps(value).encode(), strict=strict)
