"""The type of `fieldMappings` in bodies and commands, checked before anything is stored."""

from typing import Annotated, Final

from pydantic import BeforeValidator

from sallyport.base.validation import unfit
from sallyport.directory.entry import attribute_key
from sallyport.directory.mappings.model import ALIASES, ATTRIBUTE, FIELDS, MOST_TAKEN
from sallyport.directory.secret_attributes import holds_secret

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
