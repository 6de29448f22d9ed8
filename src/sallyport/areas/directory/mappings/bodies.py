"""Request and answer bodies of field mappings."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from sallyport.areas.directory.entry.descriptions import attribute_key
from sallyport.areas.directory.entry.secret_attributes import holds_secret
from sallyport.areas.directory.mappings.mapping import ALIASES, ATTRIBUTE, FIELDS, MAX_TAKEN
from sallyport.base.model import Done, Model
from sallyport.base.validation import unfit
from sallyport.web.bodies import Flag, Id, NameOrNone, OfDomain, Paged, ScopedIfGiven, TotalCount, Whole

_NAMES: Final = {name.lower(): name for name in FIELDS} | ALIASES
_ATTRIBUTES: Final = "must have names of attributes for each field, such as mail or department;lang-de"


def _field_mappings(value: object) -> object:
    if not isinstance(value, dict):
        raise unfit("must be an object with the attributes of each field, such as email: mail")
    found = dict[str, str]()
    for name, taken in value.items():
        field = _NAMES.get(str(name).lower())
        if field is None:
            raise unfit(f"must have only these fields: {', '.join(FIELDS)}")
        found[field] = ",".join(dict.fromkeys(map(_attribute, _listed(taken))))
    return found


def _listed(taken: object) -> list[str]:
    """Return the attributes of one field. taken: a list, or a text with commas."""
    texts = taken if isinstance(taken, list) else ["" if taken is None else taken]
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in texts):
        raise unfit(_ATTRIBUTES)
    found = [part.strip() for each in texts for part in str(each).split(",") if part.strip()]
    if len(found) > MAX_TAKEN:
        raise unfit(f"must have at most {MAX_TAKEN} attributes for each field")
    return found


def _attribute(text: str) -> str:
    if not ATTRIBUTE.fullmatch(text):
        raise unfit(_ATTRIBUTES)
    key = attribute_key(text)
    if holds_secret(key):
        raise unfit("must not have attributes that contain a password, a key or another secret")
    return key


FieldMappings = Annotated[
    dict[str, str],
    BeforeValidator(_field_mappings),
    Field(
        description=(
            "For each field, one or several attributes, separated by commas or as an array. Leave the "
            "attributes empty to use the default of the field."
        ),
        json_schema_extra={"propertyNames": {"enum": [*FIELDS, *ALIASES]}},
    ),
]
"""The attributes of each field, in the form of `FieldMapping.attributes`."""
Values = dict[str, str]


def _group_id(value: object) -> object:
    return None if value == "" else value


class OfMapping(ScopedIfGiven):
    """A body that refers to a group by its groupID. Without a groupID, it refers to a directory by directoryName and
    domainId."""

    groupID: Annotated[Id | None, BeforeValidator(_group_id)] = Field(
        default=None, description="Id of the group. Leave it empty to select the mapping of the whole directory."
    )
    directoryName: NameOrNone = Field(default="", description="Name of the directory. Required if groupID is empty.")
    domainId: Whole | None = Field(
        default=None, description="Id of the directory's domain. Required with directoryName."
    )

    @model_validator(mode="after")
    def _names_one(self) -> "OfMapping":
        if self.groupID is None and not (self.directoryName and self.domainId is not None):
            raise unfit("give groupID, or directoryName and domainId", "groupID")
        return self

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class ReConfigure(OfMapping):
    """Request body of the operation `reConfigure`. A field that is not in fieldMappings keeps its mapping."""

    fieldMappings: FieldMappings
    apply: Flag = Field(
        default=False,
        description="Apply the mapping to the stored people now, not only at the next import.",
    )


class PreviewMapping(OfMapping):
    """Request body of the operation `mapping/preview`."""

    fieldMappings: FieldMappings = Field(default_factory=dict)


class PreviewEntry(Model):
    """The fields of a person before and after a change of the mapping."""

    userId: int = Field(description="Id of the person.")
    dn: str = Field(description="Distinguished name of the person.")
    before: Values = Field(description="Values that the stored mapping gives, by the name of the field.")
    after: Values = Field(description="Values that the new mapping gives, by the name of the field.")


class MappingPreview(Done):
    """Response body of the operation `mapping/preview`."""

    users: list[PreviewEntry] = Field(description="Fields of at most ten people.")


class ListMappings(OfDomain, Paged):
    """Request body of the operation `mapping/list`."""


class MappingEntry(Model):
    """The field mapping of a directory or of a group."""

    directoryName: str = Field(description="Name of the directory.")
    groupId: int = Field(description="Id of the group. It is 0 for the mapping of the whole directory.")
    groupName: str = Field(description="Name of the group. It is empty for the mapping of the whole directory.")
    fieldMappings: Values = Field(description="For each field, the attributes that fill it, separated by commas.")


class MappingList(Done):
    """Response body of the operation `mapping/list`."""

    mappings: list[MappingEntry] = Field(
        description="Mappings of all directories, and of all groups that have their own mapping."
    )
    totalCount: TotalCount
