"""The rules of connection request policies of NPS that rewrite a name (`msManipulationRule`, in pairs of a regular
expression and its replacement; `msManipulationTarget` 1 is User-Name).

A rule that only removes a realm from user names becomes a realm of the domain: Sallyport removes the realm that selects
a domain. Other rules give NPS another name, for which other policies may hold, so they need a decision.
"""

import re
from dataclasses import dataclass
from typing import Final

from sallyport.areas.migration.xml import Element

USER_NAME: Final = "1"
_RULE: Final = "msManipulationRule"
_NAME: Final = r"((?:[A-Za-z0-9_-]|\\?\.)+)"
_REMOVES: Final = tuple(
    (re.compile(find), replacement)
    for find, replacement in (
        (rf"@{_NAME}\$?", ""),
        (rf"\^?{_NAME}\\\\", ""),
        (rf"\^?\(\.[*+]\)@{_NAME}\$?", "$1"),
        (rf"\^?{_NAME}\\\\\(\.[*+]\)\$?", "$1"),
    )
)
_REMOVES_ALL: Final = frozenset(
    {("@.*", ""), ("@.*$", ""), ("@.+$", ""), (r"^.*\\", ""), (r".*\\", ""), (r"^.+\\", ""), (r"(.*)\\(.*)", "$2")}
)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What the rules of a policy do. realms: those that they only remove from user names. removes_all: whether they
    remove every realm. others: other rules, for messages."""

    realms: tuple[str, ...] = ()
    removes_all: bool = False
    others: tuple[str, ...] = ()


def rewriting_of(settings: Element | None) -> Rewriting:
    """Return what the rules of a profile do. settings: the properties of the profile; None if it has none."""
    texts = [each.text for each in settings.all(_RULE)] if settings is not None else []
    if settings is None or not any(texts):
        return Rewriting()
    pairs = list(zip(texts[::2], [*texts[1::2], *[""] * (len(texts) % 2)], strict=True))
    if settings.value("msManipulationTarget") != USER_NAME or len(texts) % 2:
        return Rewriting(others=tuple(_shown(*each) for each in pairs))
    realms, removes_all, others = list[str](), False, list[str]()
    for find, replacement in pairs:
        if (realm := _removed_realm(find, replacement)) is not None:
            realms.append(realm)
        elif (find, replacement) in _REMOVES_ALL:
            removes_all = True
        else:
            others.append(_shown(find, replacement))
    return Rewriting(tuple(realms), removes_all, tuple(others))


def _removed_realm(find: str, replacement: str) -> str | None:
    for pattern, removing in _REMOVES:
        found = pattern.fullmatch(find)
        if found is not None and replacement == removing:
            return found[1].replace("\\", "")
    return None


def _shown(find: str, replacement: str) -> str:
    return f"{find[:100]!r} to {replacement[:100]!r}"
