"""The presentation definition of a request (DIF Presentation Exchange 2.1.1, section 5).

A definition of this service asks for one credential. In the payload of a VC-JWT, the fields of the credential are under
`vc`. In a credential document, the same fields are at the root. A definition gives both paths of each field, so that
every wallet finds the field.

A definition from another program is restricted, so that its evaluation takes at most a time proportional to the
credential's length. The definition must be small. Its paths consist of names, indexes and wildcards of RFC 9535, with
at most one descendant segment (`..`). Its filters only compare values. Filter expressions, lists of selectors and
regular expressions are not allowed.

The libraries for the evaluation are imported when the first definition is read (`exchange`).
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal
from uuid import uuid4

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import refusal, unfit

ALGORITHMS: Final = ("EdDSA", "ES256", "ES256K")
_COMPARISONS: Final = frozenset(
    {"type", "const", "enum", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_ANNOTATIONS: Final = frozenset({"title", "description", "$comment", "$schema"})


def _path(value: str) -> str:
    from sallyport.areas.did.presentations.exchange import compiled

    try:
        compiled(value)
    except ValueError:
        raise unfit("must be a JSONPath of names, indexes and wildcards, with at most one `..` segment") from None
    return value


def _filter(value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    from jsonschema import Draft7Validator, SchemaError

    if value is not None and not value.keys() <= _COMPARISONS | _ANNOTATIONS:
        raise unfit(f"must be a JSON Schema with no other keywords than {', '.join(sorted(_COMPARISONS))}")
    try:
        Draft7Validator.check_schema(value or {})
    except SchemaError:
        raise unfit("must be a valid JSON Schema (draft-07)") from None
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
    """The required fields of a credential. limit_disclosure: must not be `required`, because a VC-JWT cannot
    disclose only a part of itself."""

    fields: Annotated[list[RequestedField], Field(max_length=32)] = Field(default_factory=list)
    limit_disclosure: Literal["required", "preferred"] | None = None


class JwtFormat(_Part):
    """The accepted signature algorithms of JWTs."""

    alg: Annotated[list[Label], Field(min_length=1, max_length=8)]


class Formats(_Part):
    """The accepted formats of a credential. Only JWT is supported."""

    jwt_vc: JwtFormat | None = None


class InputDescriptor(_Part):
    """A credential that is requested."""

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
        """Return the definition as JSON without default values. Some wallets assume another version of the
        specification if they find `optional: false`."""
        return self.model_dump_json(exclude_defaults=True)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Definition":
        descriptors = [each.id for each in self.input_descriptors]
        fields = [field.id for each in self.input_descriptors for field in each.constraints.fields if field.id]
        if len(set(descriptors)) < len(descriptors) or len(set(fields)) < len(fields):
            raise unfit("two descriptors or two fields have the same id: give each its own id")
        return self

    @model_validator(mode="after")
    def _can_be_met(self) -> "Definition":
        if any(each.constraints.limit_disclosure == "required" for each in self.input_descriptors):
            raise unfit(
                "limit_disclosure must not be required: a credential in a JWT cannot disclose only a part of itself"
            )
        return self


def read(text: str) -> Definition:
    """Parse a definition in JSON. Raises Invalid if the text is not a definition, or uses features that are not
    supported."""
    try:
        return Definition.model_validate_json(text)
    except ValidationError as error:
        raise refusal(error) from None


def paths_in_both_forms(path: str) -> list[str]:
    """Return the two forms of a path into a credential. The first form is for a credential document. The second form is
    for the payload of a JWT."""
    return [path, "$.vc" + path.removeprefix("$")]


def for_credential(name: str, purpose: str, wanted: Mapping[str, JsonValue]) -> Definition:
    """Return a definition that requests one credential. wanted: paths into the credential. Each path has the required
    value, or None if any value is accepted. The caller must pass trusted paths and values, because they are not
    checked."""
    fields = [
        RequestedField.model_construct(
            id=path.removeprefix("$."),
            path=paths_in_both_forms(path),
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
