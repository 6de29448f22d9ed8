"""Request and answer bodies of field mappings."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.directory.entry import attribute_key
from sallyport.directory.mapping import ALIASES, ATTRIBUTE, FIELDS, MOST_TAKEN
from sallyport.directory.secret_attributes import holds_secret
from sallyport.web.paging import Paged
from sallyport.web.scope import Flag, Id, NameOrNone, OfDomain, ScopedIfGiven, Whole

_NAMES: Final = {name.lower(): name for name in FIELDS} | ALIASES
_ATTRIBUTES: Final = "the names of attributes for each field, such as mail or department;lang-de"


def _field_mappings(value: object) -> object:
    if not isinstance(value, dict):
        raise unfit("an object of fields and the attributes that they are taken from")
    found = dict[str, str]()
    for name, taken in value.items():
        field = _NAMES.get(str(name).lower())
        if field is None:
            raise unfit(f"the fields are {', '.join(FIELDS)}")
        found[field] = ",".join(dict.fromkeys(map(_attribute, _listed(taken))))
    return found


def _listed(taken: object) -> list[str]:
    """Return the attributes of one field: of a text with commas between them, or of a list."""
    texts = taken if isinstance(taken, list) else ["" if taken is None else taken]
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in texts):
        raise unfit(_ATTRIBUTES)
    found = [part.strip() for each in texts for part in str(each).split(",") if part.strip()]
    if len(found) > MOST_TAKEN:
        raise unfit(f"at most {MOST_TAKEN} attributes for each field")
    return found


def _attribute(text: str) -> str:
    if not ATTRIBUTE.fullmatch(text):
        raise unfit(_ATTRIBUTES)
    key = attribute_key(text)
    if holds_secret(key):
        raise unfit("attributes that hold no password, key or other secret")
    return key


FieldMappings = Annotated[dict[str, str], BeforeValidator(_field_mappings)]
"""The attributes of each field that is named, as `FieldMapping` has them; empty: as without a mapping."""


# --- mappings -------------------------------------------------------------------------------------------------------


def _group_id(value: object) -> object:
    return None if value == "" else value


class OfMapping(ScopedIfGiven):
    """A body that names a group by groupID, or a directory of a domain."""

    groupID: Annotated[Id | None, BeforeValidator(_group_id)] = None
    directoryName: NameOrNone = ""
    domainId: Whole | None = None

    @model_validator(mode="after")
    def _names_one(self) -> "OfMapping":
        if self.groupID is None and not (self.directoryName and self.domainId is not None):
            raise unfit("groupID, or directoryName with domainId, is needed", "groupID")
        return self

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class ReConfigure(OfMapping):
    """Body of reConfigure. What fieldMappings does not name stays as it is. apply: also to who is there already, not
    only with the next import."""

    fieldMappings: FieldMappings
    apply: Flag = False


class PreviewMapping(OfMapping):
    """Body of mapping/preview. Without fieldMappings: what is set."""

    fieldMappings: FieldMappings = Field(default_factory=dict)


class PreviewEntry(Model):
    """Somebody's fields as they are, and as they would be."""

    userId: int
    dn: str
    before: dict[str, str]
    after: dict[str, str]


class MappingPreview(Model):
    """Answer of mapping/preview: at most ten people."""

    code: int = 200
    status: str = "Success"
    message: str
    users: list[PreviewEntry]


class ListMappings(OfDomain, Paged):
    """Body of mapping/list."""


class MappingEntry(Model):
    """A mapping. groupId: 0 for the directory's own."""

    directoryName: str
    groupId: int
    groupName: str
    fieldMappings: dict[str, str]


class MappingList(Model):
    """Answer of mapping/list: every directory's, and those of the groups that have one."""

    code: int = 200
    status: str = "Success"
    message: str
    mappings: list[MappingEntry]
    totalCount: int
