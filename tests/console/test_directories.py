"""The pages of directories, their imports and their field mappings."""

from sallyport.areas.directory.imports.files import FOLDER
from sallyport.web.scope import Role
from tests.areas.directory.world import at_work, group, over, person, queue
from tests.console.visitor import Site, Visitor, text_of

EVERYONE = person("ann", "mail: ann@x.example", "cn: Ann") + person("bob") + group("staff", "uid=ann,ou=People,dc=x")


async def test_an_import_is_shown_with_its_people(site: Site, admin: Visitor) -> None:
    """The pages have the import with its counts and its faulty entries, and the people and groups that it brought. The
    page of the import leads to its directory, and the list of people to each person."""
    assert "No directory yet" in text_of(await admin.get("/directories"))
    async with at_work(site.areas):
        job = await queue(site.areas, EVERYONE + "dn: uid=,\nobjectClass: inetOrgPerson\nuid: x\n\n", name="HR")
        await over(site.areas, job)
    page = text_of(await admin.get("/directories"))
    assert "HR LDIF files" in page
    answer = await admin.get(f"/directories/imports/{job}")
    assert '<a href="/directories/1?domain=1">HR</a>' in answer.text
    shown = text_of(answer)
    assert "LDIF file, test.ldif" in shown
    people = await admin.get("/directories/people?search=ann")
    if "State done" in shown:
        assert "ann Ann ann@x.example active staff HR" in text_of(people)
        assert 'href="/people/person?domain=1&amp;user=ann"' in people.text
    assert (await admin.get("/directories/imports/999")).status_code == 404


async def test_the_people_of_cloud_directories(site: Site, admin: Visitor) -> None:
    """The filter for cloud directories leaves out the people of an LDIF file."""
    async with at_work(site.areas):
        await over(site.areas, await queue(site.areas, EVERYONE, name="HR"))
    assert "ann@x.example" in text_of(await admin.get("/directories/people"))
    assert "Nothing matches" in text_of(await admin.get("/directories/people?kind=cloud"))


async def test_the_people_of_a_group(site: Site, admin: Visitor) -> None:
    """The list of groups leads to the people of a group."""
    async with at_work(site.areas):
        await over(site.areas, await queue(site.areas, EVERYONE, name="HR"))
    page = await admin.get("/directories/groups")
    assert "staff 1 HR" in text_of(page)
    assert 'href="/directories/people?domain=1&amp;group=1"' in page.text
    members = text_of(await admin.get("/directories/people?domain=1&group=1"))
    assert "ann@x.example" in members and "bob" not in members


async def test_an_import_that_removes_most_is_confirmed(site: Site, admin: Visitor) -> None:
    """An import that would remove most people waits, and its page leads to the confirmation."""
    many = "".join(person(f"user{number}") for number in range(40))
    async with at_work(site.areas):
        await over(site.areas, await queue(site.areas, many, name="HR"))
        job = await queue(site.areas, person("user1"), name="HR", complete=True)
        await over(site.areas, job)
        assert "needs a confirmation" in text_of(await admin.get("/directories"))
        page = f"/directories/imports/{job}"
        assert f"{page}/confirm" in (await admin.get(page)).text
        assert "lose their access" in text_of(await admin.get(f"{page}/confirm"))
        await admin.send(f"{page}/confirm")
        await over(site.areas, job)
    assert "39 removed" in text_of(await admin.get("/directories"))
    refused = await admin.send(f"{page}/cancel")
    assert refused.status_code == 409


async def test_a_directory_is_added_changed_scheduled_and_removed(site: Site, admin: Visitor) -> None:
    """The form tests the settings first. A secret is never shown, and an empty one keeps the stored secret."""
    fields = {
        "directoryName": "AD", "appUrl": "ldaps://127.0.0.1:1", "baseDN": "dc=x", "bindDN": "cn=reader,dc=x",
        "secret": "hunter2",
    }  # fmt: skip
    tried = await admin.send("/directories/add", fields)
    assert "Nothing is saved" in text_of(tried)
    assert 'value="AD"' in tried.text and "hunter2" not in tried.text
    assert "No directory yet" in text_of(await admin.get("/directories"))
    answer = await admin.send("/directories/add", {**fields, "do": "save"})
    assert answer.headers["location"] == "/directories?domain=1"
    again = await admin.send("/directories/add", {**fields, "do": "save"})
    assert "already has a directory" in text_of(again)
    page = await admin.get("/directories/1")
    assert "Secret stored" in text_of(page) and "hunter2" not in page.text
    await admin.send("/directories/1/edit", {"appUrl": "ldaps://127.0.0.1:1", "baseDN": "dc=y", "do": "save",
                                             "bindDN": "cn=reader,dc=x"})  # fmt: skip
    assert "dc=y" in text_of(await admin.get("/directories/1"))
    wrong = await admin.send("/directories/1/schedule", {"everyMinutes": "60", "timesOfDay": "06:00"})
    assert "not both" in text_of(wrong)
    await admin.send("/directories/1/schedule", {"timesOfDay": "06:00, 18:30", "timeZone": "Europe/Berlin"})
    assert "at 06:00, 18:30 Europe/Berlin" in text_of(await admin.get("/directories"))
    queued = await admin.send("/directories/1/read", {"full": "yes"})
    assert "State waits" in text_of(await admin.get(queued.headers["location"]))
    assert "its people and groups" in text_of(await admin.get("/directories/1/remove"))
    await admin.send("/directories/1/remove")
    assert "removal waits" in text_of(await admin.get("/directories"))


async def test_a_mapping_is_previewed_and_saved(site: Site, admin: Visitor) -> None:
    """The preview shows the fields that change, and stores nothing. An attribute with secrets is refused."""
    async with at_work(site.areas):
        await over(site.areas, await queue(site.areas, person("ann", "mail: a@x.example", "l: Rome"), name="HR"))
    page = "/directories/1/mapping"
    shown = await admin.send(page, {"fieldMappings": "department=l", "do": "preview"})
    assert "department" in text_of(shown) and "Rome" in text_of(shown)
    assert "default attribute" in text_of(await admin.get("/directories/1"))
    assert (await admin.send(page, {"fieldMappings": "department=userPassword"})).status_code == 400
    assert "write FIELD=ATTRIBUTE" in text_of(await admin.send(page, {"fieldMappings": "department"}))
    await admin.send(page, {"fieldMappings": "department=l"})
    assert "department l" in text_of(await admin.get("/directories/1"))


async def test_an_auditor_reads_directories(site: Site) -> None:
    """An auditor sees directories, and the pages offer no change."""
    async with at_work(site.areas):
        job = await queue(site.areas, EVERYONE, name="HR")
        await over(site.areas, job)
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/directories", "/directories/1", f"/directories/imports/{job}", "/directories/people"):
            page = await auditor.get(path)
            assert page.status_code == 200
            assert not [each for each in ("/add", "/edit", "/read", "/remove", "/mapping") if f"{each}?" in page.text]


async def test_text_of_a_directory_is_only_text(site: Site, admin: Visitor) -> None:
    """Names, groups and file errors that contain markup are shown as text on every page."""
    bad = "x<script>alert(1)</script>"
    async with at_work(site.areas):
        ldif = person("ann", f"cn: {bad}", f"mail: {bad}@x.example")
        ldif += f"dn: cn=g,dc=x\nobjectClass: groupOfNames\ncn: {bad}\nmember: uid=ann,ou=People,dc=x\n\n"
        job = await queue(site.areas, ldif, name=bad)
        await over(site.areas, job)
    for path in ("/directories", "/directories/1", f"/directories/imports/{job}", "/directories/people",
                 "/directories/groups", "/directories/1/mapping", "/directories/1/remove", "/audit"):  # fmt: skip
        page = (await admin.get(path)).text
        assert "<script>alert" not in page, path
        assert "x&lt;script&gt;alert(1)" in page, path


UPLOAD = "/directories/imports/add"


async def test_an_ldif_file_is_uploaded(site: Site, admin: Visitor) -> None:
    """The answer leads to the import, which shows its progress until it has ended."""
    fields = {"domainId": str(site.areas.domain), "directoryName": "HR"}
    async with at_work(site.areas):
        answer = await admin.send_file(UPLOAD, fields, "hr.ldif", EVERYONE.encode())
        assert answer.status_code == 303
        page, _, _ = answer.headers["location"].partition("?")
        await over(site.areas, int(page.rpartition("/")[2]))
    shown = text_of(await admin.get(page))
    assert "Directory HR Kind LDIF file, hr.ldif State done" in shown
    assert "ann" in text_of(await admin.get("/directories/people"))


async def test_an_upload_without_the_form_token_stores_nothing(site: Site, admin: Visitor) -> None:
    """The form token is checked before the file is stored. A token after the file comes too late."""
    files = site.areas.settings.data_dir / FOLDER
    fields = {"domainId": str(site.areas.domain)}
    other = "0" * 64
    for given in ({}, {"csrf": other}):
        answer = await admin.post_file(UPLOAD, {**fields, **given}, "x", EVERYONE.encode())
        assert answer.status_code == 403
        assert "this form has expired" in text_of(answer)
    assert not files.exists() or not list(files.iterdir())
    assert "No directory yet" in text_of(await admin.get("/directories"))


async def test_an_upload_is_limited_to_the_domains_of_the_tenant(site: Site, admin: Visitor) -> None:
    """Another tenant's domain, a missing file and a file that is too large are refused with the reason."""
    foreign = await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 1), "other")
    refused = await admin.send_file(UPLOAD, {"domainId": str(foreign)}, "x.ldif", b"")
    assert refused.status_code == 403
    assert "domain not in tenant" in text_of(refused)
    missing = await admin.http.post(
        UPLOAD, content=b"--x--\r\n", headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert missing.status_code == 400
    large = await admin.http.post(
        UPLOAD, content=b"", headers={"content-type": "multipart/form-data; boundary=x", "content-length": "70000000"}
    )
    assert large.status_code == 413
    assert "the body is larger than 64 MiB" in text_of(large)
