"""The import of another RADIUS server's configuration: the plan, and the second upload that writes it."""

import re
from html import unescape
from pathlib import Path

from sallyport.areas.configuration.item import Item
from sallyport.web.scope import Role
from tests.areas import Areas
from tests.console.visitor import Site, Visitor, text_of

NPS = (Path(__file__).parents[2] / "docs" / "guides" / "nps_example.xml").read_bytes()
_FIELDS = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
_AREA = re.compile(r'<textarea id="(\w+)"[^>]*>\n([^<]*)</textarea>')


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of the form that writes the plan."""
    form = page[page.index("Write the plan</h2>") :].partition("</form>")[0]
    return {name: unescape(value) for name, value in _FIELDS.findall(form)}


async def test_the_wizard(areas: Areas, admin: Visitor) -> None:
    """A file leads to a plan with what cannot be expressed. The plan asks for groups and decisions, and is written with
    the same file."""
    first = {"domainId": "1", "format": "nps", "timezone": "Europe/Berlin"}
    plan = await admin.send_file("/import", first, "nps.xml", NPS)
    assert plan.status_code == 200, text_of(plan)
    text = text_of(plan)
    assert "Nothing is written yet" in text and "nps.xml:" in text and "left out" in text
    asked = {name: unescape(value) for name, value in _AREA.findall(plan.text)}
    assert "S-1-5-" in asked["groups"] and asked["decisions"] == "No guests=\nStaff on Wi-Fi="
    assert "action: allow" in text and "ruleOrder: identity -> listed" in text and "enabled: False" in text
    fields = {
        **first,
        "groups": re.sub(r"=$", "=staff", asked["groups"], flags=re.MULTILINE),
        "decisions": re.sub(r"=$", "=block", asked["decisions"], flags=re.MULTILINE),
    }
    ready = await admin.send_file("/import", fields, "nps.xml", NPS)
    sent = hidden(ready.text)
    assert sent["groups"] == fields["groups"] and "Write the plan" in text_of(ready)
    assert not areas.app.rules.service.all_of(1)
    done = await admin.post_file("/import", sent, "nps.xml", NPS)
    assert done.status_code == 303, text_of(done)
    assert "objects imported" in text_of(await admin.get("/import"))
    assert areas.app.rules.service.all_of(1)[-1].name
    again = text_of(await admin.send_file("/import", fields, "nps.xml", NPS))
    assert "nothing would change" in again and "Write the plan" not in again


async def test_the_plan_asks_before_it_changes_objects_of_files(areas: Areas, admin: Visitor) -> None:
    """The plan is written only if the person insists."""
    client = {"name": "VPN", "address": "192.0.2.1", "secret": "correct horse battery", "domains": ["corp"]}
    await areas.app.configured.engine.run(areas.tenant, [Item("client", "VPN", client, "client.toml:1")])
    first = {"domainId": "1", "format": "csv", "columns": "name=Name\naddress=Address\nsecret=Secret"}
    table = b"Name,Address,Secret\nVPN,192.0.2.1,another horse battery\n"
    plan = await admin.send_file("/import", first, "t.csv", table)
    asks = "The plan changes 1 object that files manage: client vpn. The next apply undoes it."
    assert asks in text_of(plan) and 'name="insists"' in plan.text
    sent = hidden(plan.text)
    refused = await admin.post_file("/import", sent, "t.csv", table)
    assert refused.status_code == 409 and "client.toml manages the client vpn" in text_of(refused)
    done = await admin.post_file("/import", {**sent, "insists": "yes"}, "t.csv", table)
    assert done.status_code == 303, text_of(done)


async def test_a_refused_file_shows_the_form_again(admin: Visitor) -> None:
    """The reason is on the page, and the file is not."""
    refused = await admin.send_file("/import", {"domainId": "1", "format": "nps"}, "x.xml", b"<Root>")
    assert refused.status_code == 400 and "not valid XML" in text_of(refused) and "Show the plan" in text_of(refused)


async def test_a_file_without_a_form_token(admin: Visitor) -> None:
    answer = await admin.post_file("/import", {"csrf": "0" * 64, "domainId": "1", "format": "nps"}, "x.xml", NPS)
    assert answer.status_code == 403


async def test_an_import_needs_the_role_admin(site: Site) -> None:
    async with site.visitor() as operator:
        await operator.sign_in(await site.token(Role.OPERATOR))
        assert (await operator.get("/import")).status_code == 403
