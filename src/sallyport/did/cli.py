"""`sallyport did`, `sallyport schema`, `sallyport credential`: what an issuer does from a terminal."""

from pathlib import Path

import click

from sallyport.base.command import CommandLine, Form, pages
from sallyport.base.errors import StartError
from sallyport.base.wire import JSON

DIDS = ("id", "kind", "name", "did", "issued", "updated")
SCHEMAS = ("id", "name", "author", "signed")
CREDENTIALS = ("id", "name", "user", "status", "issued", "expires")
PASSWORD = "epmPassword"  # noqa: S105  a claim's name

_domain = click.option("--domain", required=True, help="The domain's name or domainId.")
_json_form = click.option("--json", "form", flag_value="json", help="As JSON.")


@click.group()
def did() -> None:
    """DIDs of issuers and holders, and their keys."""


@did.command()
@click.argument("name")
@_domain
@click.option("--method", type=click.Choice(["key", "jwk", "web"]), default="key", show_default=True)
@click.option("--key-type", type=click.Choice(["Ed25519", "P-256", "secp256k1"]), default="Ed25519", show_default=True)
@click.option("--description", default="", help="What it issues.")
@click.pass_obj
def create(line: CommandLine, *, name: str, domain: str, method: str, key_type: str, description: str) -> None:
    """Make an issuer, whose key never leaves the service; prints its DID."""
    made = line.call("did.create", name=name, domain=domain, method=method, key_type=key_type, description=description)
    line.print(str(made))
    line.note(f"issuer {name} is added to {domain}")


@did.command("list")
@_domain
@_json_form
@click.pass_obj
def list_dids(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the DIDs of a domain."""
    line.print_rows(pages(line, "did.list", domain=domain), DIDS, form)


@did.command()
@click.argument("identifier", metavar="DID")
@_domain
@click.pass_obj
def rotate(line: CommandLine, *, identifier: str, domain: str) -> None:
    """Give an issuer's did:web a new key; prints its verification method. What was signed before still verifies."""
    line.print(str(line.call("did.rotate", did=identifier, domain=domain)))


@did.command()
@click.argument("identifier", metavar="DID")
@_domain
@click.option("--holder", is_flag=True, help="It is a holder's, not an issuer's.")
@click.pass_obj
def delete(line: CommandLine, *, identifier: str, domain: str, holder: bool) -> None:
    """Take a DID off the lists: it issues no more. What it has signed can still be verified, and revoked."""
    line.call("did.delete", did=identifier, domain=domain, kind="User" if holder else "Issuer")
    line.note(f"{identifier} is deleted from {domain}")


@click.group()
def schema() -> None:
    """Schemas of credentials: what a subject must have."""


@schema.command("add")
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_domain
@click.option("--issuer", required=True, help="The DID of its author.")
@click.option("--unsigned", is_flag=True, help="Without the author's proof.")
@click.pass_obj
def add_schema(line: CommandLine, *, name: str, file: Path, domain: str, issuer: str, unsigned: bool) -> None:
    """Add a JSON Schema, of draft-07 or 2020-12, from a file; prints its schemaId."""
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"{file}: {error}") from error
    made = line.call("schema.add", name=name, domain=domain, issuer=issuer, content=content, sign=not unsigned)
    line.print(str(made))


@schema.command("list")
@_domain
@_json_form
@click.pass_obj
def list_schemas(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the schemas of a domain."""
    line.print_rows(pages(line, "schema.list", domain=domain), SCHEMAS, form)


@click.group()
def credential() -> None:
    """Credentials of holders."""


@credential.command()
@click.argument("name")
@_domain
@click.option("--issuer", required=True, help="The issuer's DID.")
@click.option("--holder", required=True, help="The holder's DID.")
@click.option("--schema", "schema_id", type=int, required=True, help="The schemaId.")
@click.option("--claim", "claims", multiple=True, metavar="NAME=VALUE", help="A claim; may be repeated.")
@click.option("--expires", default="", help="An ISO 8601 time; never unless given.")
@click.option("--password", metavar="-", help="- reads a password for the holder alone from standard input.")
@click.pass_obj
def issue(
    line: CommandLine,
    *,
    name: str,
    domain: str,
    issuer: str,
    holder: str,
    schema_id: int,
    claims: tuple[str, ...],
    expires: str,
    password: str | None,
) -> None:
    """Issue a credential; prints its number."""
    if password not in (None, "-"):
        raise click.UsageError("--password takes - only: all users of a machine see its command lines")
    said = {name: value for name, mark, value in (each.partition("=") for each in claims) if mark and name}
    if len(said) != len(claims) or PASSWORD in said:
        raise click.UsageError("--claim is NAME=VALUE, each name once; a password comes with --password -")
    if password is not None:
        said[PASSWORD] = line.read_secret("Password").decode("utf-8", "strict")
    number = line.call(
        "credential.issue",
        name=name,
        domain=domain,
        issuer=issuer,
        holder=holder,
        schema_id=schema_id,
        claims=dict[str, JSON](said),
        expires=expires,
    )
    line.print(str(number))


@credential.command("list")
@_domain
@_json_form
@click.pass_obj
def list_credentials(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the credentials of a domain."""
    line.print_rows(pages(line, "credential.list", domain=domain), CREDENTIALS, form)


@credential.command()
@click.argument("number", type=int, metavar="ID")
@_domain
@click.pass_obj
def show(line: CommandLine, *, number: int, domain: str) -> None:
    """Show a credential as a document, with its issuer's proof."""
    line.print_json(line.call("credential.show", id=number, domain=domain))


@credential.command()
@click.argument("number", type=int, metavar="ID")
@_domain
@click.pass_obj
def revoke(line: CommandLine, *, number: int, domain: str) -> None:
    """Revoke a credential, for good; its holder's sessions end where the domain says so."""
    line.call("credential.revoke", id=number, domain=domain)
    line.note(f"credential {number} is revoked")
