"""`sallyport profile`: the files that make devices join a network."""

from base64 import b64decode
from pathlib import Path
from typing import Final

import click

from sallyport.areas.profiles.bodies import GetProfileFile, ListProfiles, MakeProfileLink, SetProfile
from sallyport.base.wire import JSON, Row
from sallyport.host import disk
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import Group, InputFile, as_json, in_domain, json_answer, json_form

COLUMNS: Final = ("name", "ssids", "wired", "method", "security", "linkExpiresAt")
FILES: Final = ("file", "title")
PUBLIC: Final = 0o644
"""Mode of a saved file. It contains no secret."""


@click.group(cls=Group, first=("set", "list", "show", "save", "link"))
def profile() -> None:
    """Network profiles for devices: Apple, Windows, Android, Linux."""


@profile.command("set")
@field_argument("name", "name")
@in_domain
@option(SetProfile, "ssids", "--ssid")
@options(SetProfile, "hidden", "security", "wired", "method", "loginBy", "outerIdentity")
@option(SetProfile, "serverNames", "--server-name")
@click.option(
    "--anchor",
    type=InputFile(),
    metavar="FILE",
    help="PEM file with the authority that issued the server's certificate. Default: the root in the server's files.",
)
@pass_body
def set_(line: CommandLine, body: Row, *, domain: str, anchor: Path | None) -> None:
    """Change a profile. A profile that does not exist is added."""
    if anchor is not None:
        body["anchors"] = anchor.read_text(encoding="ascii", errors="replace")
    line.note(str(line.run("/ad/SetProfile", body, domain=domain)["message"]))


@profile.command("list")
@in_domain
@options(ListProfiles, "search")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the profiles of a domain."""
    line.print_rows(line.listed("/ad/ListProfiles", "profiles", body, domain=domain), COLUMNS, form)


@profile.command()
@field_argument("name", "name")
@in_domain
@as_json
@pass_body
def show(line: CommandLine, body: Row, *, domain: str, as_json: bool) -> None:
    """Show what devices will trust, the files of a profile, and the settings to type on Android."""
    found = line.run("/ad/ShowProfile", body, domain=domain)
    if as_json:
        return line.print_json(found)
    line.print_rows(entries(found["androidSettings"]), ("title", "value"))
    line.print_rows(entries(found["files"]), FILES)
    for each in entries(found["trustedAnchors"]):
        line.print(f"authority: {each['name']}, SHA-1 {each['sha1']}")
    names = found["trustedNames"]
    line.print(f"server names: {', '.join(map(str, names)) if isinstance(names, list) else ''}")
    warnings = found["warnings"]
    for text in [found["problem"], *(warnings if isinstance(warnings, list) else [])]:
        if text:
            line.note(f"warning: {text}")
    return None


@profile.command()
@field_argument("name", "name")
@in_domain
@click.option("--file", "wanted", multiple=True, metavar="NAME", help="File to save. Default: all files. Repeatable.")
@option(GetProfileFile, "userName", "--user")
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Directory for the files. Default: the present directory.",
)
@json_answer
@pass_body
def save(line: CommandLine, body: Row, *, domain: str, wanted: tuple[str, ...], to: Path) -> None:
    """Save the files of a profile in a directory, and print their paths. Existing files are replaced."""
    found = line.run("/ad/ShowProfile", {"name": body["name"]}, domain=domain)
    paths = []
    for name in wanted or [str(each["file"]) for each in entries(found["files"])]:
        made = line.run("/ad/GetProfileFile", {**body, "file": name}, domain=domain)
        path = to / str(made["file"])
        disk.write(path, b64decode(str(made["content"])), mode=PUBLIC)
        paths.append(str(path))
    line.print_answer({"files": list[JSON](paths)}, "\n".join(paths))


@profile.command()
@field_argument("name", "name")
@in_domain
@options(MakeProfileLink, "days")
@json_answer
@pass_body
def link(line: CommandLine, body: Row, *, domain: str) -> None:
    """Print a new link to a page with the files of a profile. The former link ends."""
    made = line.run("/ad/MakeProfileLink", body, domain=domain)
    line.print_answer(made, str(made["link"]))
    if made["link"]:
        return line.note(f"the link is shown only now, and expires at {made['linkExpiresAt']}")
    return line.note(str(made["message"]))


@profile.command()
@field_argument("name", "name")
@in_domain
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Remove a profile and its link."""
    line.note(str(line.run("/ad/RemoveProfile", body, domain=domain)["message"]))
