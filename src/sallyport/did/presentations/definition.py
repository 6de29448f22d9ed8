"""The presentation definition of a request (DIF Presentation Exchange 2.1.1, section 5).

Definitions that this service makes ask for one credential. A VC-JWT is evaluated on its payload, where the credential
stands under `vc`; a credential document has the same fields at its root. Both forms of each path are given, so that
every evaluator finds the field.

A definition from outside is read strictly: it is small, its paths are names, indexes and wildcards of
RFC 9535 with one descent at most, and its filters compare. Nothing in it can take more time than the credential is
long: no filter expressions, no lists of selectors (which multiply), no regular expressions. The libraries for that are
imported by the first that is read (`exchange`).
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal
from uuid import uuid4

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import refusal, unfit

ALGORITHMS: Final = ("EdDSA", "ES256", "ES256K")
_COMPARING: Final = frozenset(
    {"type", "const", "enum", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_TELLING: Final = frozenset({"title", "description", "$comment", "$schema"})


def _path(value: str) -> str:
    from sallyport.did.presentations.exchange import compiled

    try:
        compiled(value)
    except ValueError:
        raise unfit("a JSONPath of names, indexes and wildcards, with one descent at most") from None
    return value


def _filter(value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    from jsonschema import Draft7Validator, SchemaError

    if value is not None and not value.keys() <= _COMPARING | _TELLING:
        raise unfit(f"a JSON Schema of {', '.join(sorted(_COMPARING))}")
    try:
        Draft7Validator.check_schema(value or {})
    except SchemaError:
        raise unfit("a JSON Schema") from None
    return value


class _Part(Model):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


Label = Annotated[str, Field(max_length=255)]
Path = Annotated[str, AfterValidator(_path)]


class RequestedField(_Part):
    """A field that the credential must have (section 5.1.1)."""

    id: Label | None = None
    path: Annotated[list[Path], Field(min_length=1, max_length=8)]
    purpose: Label | None = None
    filter: Annotated[dict[str, JsonValue] | None, AfterValidator(_filter)] = None
    optional: bool = False


class Constraints(_Part):
    """limit_disclosure: a VC-JWT cannot disclose a part of itself."""

    fields: Annotated[list[RequestedField], Field(max_length=32)] = Field(default_factory=list)
    limit_disclosure: Literal["required", "preferred"] | None = None


class JwtFormat(_Part):
    """The signatures that are taken."""

    alg: Annotated[list[Label], Field(min_length=1, max_length=8)]


class Formats(_Part):
    """Of the formats there are, the one that this service knows."""

    jwt_vc: JwtFormat | None = None


class InputDescriptor(_Part):
    """One credential that is asked for."""

    id: Annotated[str, Field(min_length=1, max_length=255)]
    name: Label = ""
    purpose: Annotated[str, Field(max_length=1024)] = ""
    format: Formats | None = None
    constraints: Constraints


class Definition(_Part):
    """A presentation definition."""

    id: Annotated[str, Field(min_length=1, max_length=255)]
    input_descriptors: Annotated[list[InputDescriptor], Field(min_length=1, max_length=4)]

    @property
    def text(self) -> str:
        """The definition as JSON without default values: some evaluators read `optional: false` as another version."""
        return self.model_dump_json(exclude_defaults=True)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Definition":
        descriptors = [each.id for each in self.input_descriptors]
        fields = [field.id for each in self.input_descriptors for field in each.constraints.fields if field.id]
        if len(set(descriptors)) < len(descriptors) or len(set(fields)) < len(fields):
            raise unfit("ids that are unique")
        return self

    @model_validator(mode="after")
    def _can_be_met(self) -> "Definition":
        if any(each.constraints.limit_disclosure == "required" for each in self.input_descriptors):
            raise unfit("a VC-JWT cannot disclose a part of itself")
        return self


def read(text: str) -> Definition:
    """Read a definition in JSON. Invalid: it is none, or one that is not evaluated here."""
    try:
        return Definition.model_validate_json(text)
    except ValidationError as error:
        raise refusal(error) from None


def both(path: str) -> list[str]:
    """Return a path into a credential for its document, and for the payload of its JWT."""
    return [path, "$.vc" + path.removeprefix("$")]


def for_credential(name: str, purpose: str, wanted: Mapping[str, JsonValue]) -> Definition:
    """Return a definition that asks for one credential. wanted: paths into the credential, each with the value that it
    must have; None: any. Its own paths and filters need no check."""
    fields = [
        RequestedField.model_construct(
            id=path.removeprefix("$."),
            path=both(path),
            filter=None if value is None else {"type": "string", "const": value},
        )
        for path, value in wanted.items()
    ]
    descriptor = InputDescriptor(
        id=str(uuid4()),
        name=name,
        purpose=purpose,
        format=Formats(jwt_vc=JwtFormat(alg=list(ALGORITHMS))),
        constraints=Constraints(fields=fields),
    )
    return Definition(id=str(uuid4()), input_descriptors=[descriptor])
