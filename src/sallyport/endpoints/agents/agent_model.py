"""The bodies of the operations that agents ask for: their registration, and base.agentwire's messages."""

import json
import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from typing import Generic, TypeVar

from pydantic import AliasChoices, ConfigDict, Field, GetJsonSchemaHandler, SkipValidation, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from sallyport.base.agentwire.report import Poll, PrivilegeStatus, Report, Rotation, rotation
from sallyport.base.errors import FieldError, Invalid, WireError
from sallyport.base.model import Model
from sallyport.base.wire import camel, decode
from sallyport.endpoints.agents.machines import Machine, Registered
from sallyport.endpoints.agents.presence import HEARTBEAT_S
from sallyport.endpoints.instances.bodies import AddressText
from sallyport.web.scope import Id, ScopedIfGiven, Text, Whole

MessageT = TypeVar("MessageT")
_SCOPE = ("orgId", "tenantId")
_INDEX = re.compile(r"\[\d+\]")


class AddMachine(ScopedIfGiven):
    """Body of add-machine, in either shape. machineId: what tells the machine from others, whatever it is called."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"machineKey": "spk_...", "osId": 1, "publicIpAddress": "203.0.113.7", "privateIpAddress": "10.0.0.7"},
                {"domainId": 1, "instanceName": "web-1", "osId": 1, "publicIp": "", "privateIp": "10.0.0.7"},
            ]
        }
    )

    domainId: Whole | None = Field(default=None, validation_alias=AliasChoices("domainId", "domain_id"))
    machineKey: Text = ""
    instanceName: Text = Field(default="", validation_alias=AliasChoices("instanceName", "instance_name"))
    osId: Id = Field(default=0, validation_alias=AliasChoices("osId", "os_id"))
    publicIp: AddressText = Field(default="", validation_alias=AliasChoices("publicIpAddress", "publicIp", "public_ip"))
    privateIp: AddressText = Field(
        default="", validation_alias=AliasChoices("privateIpAddress", "privateIp", "private_ip")
    )
    hostName: Text = ""
    machineId: Text = ""
    agentVersion: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, value: object) -> object:
        """What is sent empty or null is not said: nothing that was told before is cleared by it."""
        if not isinstance(value, dict):
            return value
        return {name: said for name, said in value.items() if said is not None and said != ""}

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)

    def claimed_key(self) -> str | None:
        return self.machineKey or None

    @property
    def machine(self) -> Machine:
        """What is told of the machine."""
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
    """Answer of add-machine. stateKey: the Ed25519 key, in base64, by which an agent checks its states; empty for who
    is no agent."""

    instanceId: str
    code: str = "200"
    message: str
    domainId: int
    stateKey: str
    heartbeatSeconds: int = HEARTBEAT_S

    @classmethod
    def of(cls, made: Registered) -> "MachineAdded":
        """The answer for a machine."""
        return cls(
            instanceId=str(made.instance_id),
            message="machine added" if made.is_new else "machine known",
            domainId=made.domain_id,
            stateKey=b64encode(made.state_key).decode(),
        )


class AgentMessage(ScopedIfGiven, ABC, Generic[MessageT]):
    """A message of base.agentwire, which its own reader checks."""

    said: SkipValidation[MessageT]

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the message as it is sent: its own fields, in camelCase, beside orgId and tenantId."""
        body = handler.resolve_ref_schema(handler(schema))
        message = handler.resolve_ref_schema(body["properties"].pop("said"))
        _spell_as_sent(message, handler)
        body["properties"] |= message["properties"]
        body["required"] = message.get("required", [])
        return body

    @classmethod
    @abstractmethod
    def reader(cls, value: object) -> MessageT:
        """The message in a JSON value. WireError names the field, without the value."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        try:
            return {**{name: value.get(name) for name in _SCOPE}, "said": cls.reader(value)}
        except WireError as error:
            path, _, told = str(error).partition(": ")
            name = _INDEX.sub("", path).rpartition(".")[2]
            kind = "missing" if told == "missing" else "invalid"
            raise Invalid(f"{kind} {name}", (FieldError(path, told),)) from None


def _spell_as_sent(schema: JsonSchemaValue, handler: GetJsonSchemaHandler) -> None:
    """Write the names of a message's fields, and of the messages in it, in camelCase."""
    for part in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("properties", {}).values()):
        if part:
            _spell_as_sent(handler.resolve_ref_schema(part), handler)
    if "properties" in schema:
        schema["properties"] = {camel(name): field for name, field in schema["properties"].items()}
        schema["required"] = [camel(name) for name in schema.get("required", ())]


class PollBody(AgentMessage[Poll]):
    """Body of desiredState: agentwire.Poll."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": 0, "waitS": 50}]})

    @classmethod
    def reader(cls, value: object) -> Poll:
        return decode(Poll, value)


class ReportBody(AgentMessage[Report]):
    """Body of report: agentwire.Report."""

    @classmethod
    def reader(cls, value: object) -> Report:
        return decode(Report, value)


class PrivilegesBody(AgentMessage[PrivilegeStatus]):
    """Body of privilegeStatus: agentwire.PrivilegeStatus."""

    @classmethod
    def reader(cls, value: object) -> PrivilegeStatus:
        return decode(PrivilegeStatus, value)


class RotationBody(AgentMessage[Rotation]):
    """Body of rotation: agentwire.Rotation."""

    @classmethod
    def reader(cls, value: object) -> Rotation:
        return rotation(json.dumps(value).encode())
