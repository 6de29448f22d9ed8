"""Fields of request bodies with tags and notes; `base.tags` has the form of tags.

Tags in a request change the present tags: a tag replaces the one with its key, and an empty value removes the tag of a
key. So the same request can change many objects whose other tags differ. Tags are an array of texts KEY=VALUE, or an
object as in answers.
"""

from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from sallyport.base.errors import Invalid
from sallyport.base.tags import MAX_NOTE, MAX_TAG, MAX_TAGS, NO_TAGS, as_texts, canonical_tag, changed_tags
from sallyport.base.text import trimmed
from sallyport.base.validation import unfit
from sallyport.web.bodies import Many, plain


def _tag(value: str, *, may_be_empty: bool = False) -> str:
    try:
        return canonical_tag(value, may_be_empty=may_be_empty)
    except Invalid as error:
        raise unfit(error.fields[0].message) from None


def _tag_or_none(value: str) -> str:
    return _tag(value) if value else ""


def _each_key_once(value: list[str]) -> list[str]:
    try:
        changed_tags(NO_TAGS, value)
    except Invalid as error:
        raise unfit(error.fields[0].message) from None
    return value


def _texts(value: object) -> object:
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return as_texts(value)
    return value


OR_OBJECT: Final = BeforeValidator(_texts)
"""A validator of an array of tags, which may also be an object."""
TagText = Annotated[str, Field(max_length=MAX_TAG), AfterValidator(_tag)]
"""A tag `key=value`, in canonical form."""
TagFilter = Annotated[
    str,
    Field(
        max_length=MAX_TAG,
        description="Tag KEY=VALUE of the wanted entries. A value with / or # is a hierarchy, which its beginning "
        "selects: site=Berlin selects site=Berlin/Floor 2 too. Leave it empty to use no filter.",
    ),
    AfterValidator(_tag_or_none),
]
"""A tag that selects the entries of a list, in canonical form; empty for all entries."""
NewTags = Annotated[
    Many[Annotated[str, Field(max_length=MAX_TAG), AfterValidator(partial(_tag, may_be_empty=True))]],
    OR_OBJECT,
    AfterValidator(_each_key_once),
    Field(
        max_length=2 * MAX_TAGS,
        description="Tags to set, each KEY=VALUE, or an object. A tag replaces the one with its key, and KEY= removes "
        "it. An empty array removes all tags.",
    ),
]
"""A change of tags: it may remove all present ones and set as many. `base.tags.changed_tags` applies it."""
Note = Annotated[str, Field(max_length=MAX_NOTE), AfterValidator(plain), AfterValidator(trimmed)]
"""A note of an admin, which may be empty."""
