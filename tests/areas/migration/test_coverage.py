"""Nothing of an export of NPS is dropped in silence: each element of the example of the guide is changed, one after the
other, and each change shows in the plan."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from sallyport.areas.migration import nps
from sallyport.areas.migration.translation import Options, Weight
from sallyport.base.errors import Invalid
from tests.docs.commands import ROOT

EXAMPLE = ROOT / "docs/guides/nps_example.xml"
WITHOUT_EFFECT = {
    *("Version", "Description", "Component_Id", "Opaque_Data", "Children"),
    "msNPAction",  # a profile that is not in the file: that of the policy's own name counts
    "Client_Secret_Template_Guid",  # the clients of the example have secrets of their own
}
"""Elements of the format and of the console of NPS, and those that another element of the example overrides."""
SUMMARIZED = (
    "/SDO_Schema",
    "/Vendors",
)
"""Elements that a finding names as a whole, and the names of vendors."""
OPPOSITE = {"0": "1", "1": "0"}


class Export:
    """The example, of which a test changes an element."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.root = ElementTree.parse(EXAMPLE).getroot()  # noqa: S314  a file of this repository
        self._before = self._plan()

    def shows(self) -> bool:
        """Return whether the plan differs from that of the example."""
        return self._plan() != self._before

    def _plan(self) -> object:
        self._path.write_bytes(ElementTree.tostring(self.root))
        try:
            return nps.translate(self._path, Options("corp", timezone="Europe/Berlin")).as_json()
        except Invalid as error:
            return str(error)

    def elements(self) -> Iterator[tuple[str, Element]]:
        """Yield all elements with the names above them."""
        waiting = [("", self.root)]
        while waiting:
            above, element = waiting.pop()
            path = f"{above}/{element.get('name') or element.tag}"
            yield path, element
            waiting += [(path, each) for each in element]


@pytest.fixture
def example(tmp_path: Path) -> Export:
    """The example of the guide."""
    return Export(tmp_path / "nps.xml")


def test_each_value_has_an_effect(example: Export) -> None:
    """Another value of an element gives another plan, at least in one place of the file."""
    shown = defaultdict[str, list[bool]](list)
    for _, element in list(example.elements()):
        if len(element) == 0:
            before, element.text = element.text, OPPOSITE.get((element.text or "").strip(), "997")
            shown[element.tag].append(example.shows())
            element.text = before
    assert {tag for tag, found in shown.items() if not any(found)} <= WITHOUT_EFFECT
    assert len(shown) > 20


def test_only_what_is_not_used_is_left_out() -> None:
    """No element of the example that was used is listed. The client with a host name is the only one left out."""
    found = nps.translate(EXAMPLE, Options("corp", timezone="Europe/Berlin"))
    assert [each.name for each in found.named(Weight.LEFT_OUT)] == ["vpn"]


def test_each_unknown_element_is_a_finding(example: Export) -> None:
    """An element that no reader knows shows in the plan, wherever it is."""
    silent = list[str]()
    for path, element in list(example.elements()):
        if len(element) > 0 and not any(each in path for each in SUMMARIZED):
            unknown = ElementTree.SubElement(element, "Unknown")
            unknown.text = "7"
            silent += [] if example.shows() else [path]
            element.remove(unknown)
    assert "\n".join(silent) == ""
