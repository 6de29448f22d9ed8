"""`sallyport did`, `sallyport schema` and `sallyport credential`: the commands of issuers."""

import json
from pathlib import Path

import click

from sallyport.areas.did.credentials.bodies import CreateCredential
from sallyport.areas.did.dids.bodies import CreateIssuerDid
from sallyport.base.errors import StartError
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.fields import check_is_dash, field_argument, field_option, option, options, pass_body
from sallyport.shell.options import FUTURE, Group, InputFile, in_domain, json_answer, json_form

DIDS = ("id", "DIDType", "name", "did", "credentialIssued", "lastYpdatedAt")
SCHEMAS = ("id", "name", "author", "signed")
CREDENTIALS = ("id", "name", "epmUsername", "status", "issuedAt", "expireDate")
PASSWORD = "epmPassword"  # noqa: S105  a claim's name


@click.group(cls=Group)
def did() -> None:
    """DIDs of issuers and holders, and their keys."""


@did.command()
@field_argument("name", "name")
@in_domain
@option(
    CreateIssuerDid,
    "method",
    type=click.Choice(["key", "jwk", "web"]),
    required=False,
    default="key",
    show_default=True,
    help="DID method; only the key of a did:web can be rotated.",
)
@option(CreateIssuerDid, "keyType", type=click.Choice(["Ed25519", "P-256", "secp256k1"]))
@options(CreateIssuerDid, "description")
@json_answer
@pass_body
def create(line: CommandLine, body: Row, *, domain: str) -> None:
    """Create an issuer and print its DID. The private key never leaves the service."""
    name = str(body["name"])
    if not name.strip():
        raise click.BadParameter(
            f'"{name}" is not understood; give a name of at least one character', param_hint="NAME"
        )
    made = line.run("/api/v1/did/createIssuerDid", {"method": "key", **body}, domain=domain)
    line.print_answer(made, str(made["id"]))
    line.note(f"issuer {name} is added to {domain}")


@did.command("list")
@in_domain
@json_form
@click.pass_obj
def list_dids(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the DIDs of a domain."""
    line.print_rows(line.listed("/api/v1/did/DIDList", None, domain=domain), DIDS, form)


@did.command()
@click.argument("identifier", metavar="DID")
@in_domain
@json_answer
@click.pass_obj
def rotate(line: CommandLine, *, identifier: str, domain: str) -> None:
    """Give an issuer's did:web a new key, and print the id of the key's verification method. Signatures that were made
    with the former key stay valid."""
    made = line.run("/api/v1/did/rotateKey", {"did": identifier}, domain=domain)
    line.print_answer(made, str(made["verificationMethod"]))


@did.command()
@click.argument("identifier", metavar="DID")
@in_domain
@click.option("--holder", is_flag=True, help="The DID is a holder's, not an issuer's.")
@click.pass_obj
def delete(line: CommandLine, *, identifier: str, domain: str, holder: bool) -> None:
    """Delete a DID. A deleted issuer can issue no credentials. Its existing credentials can still be verified and
    revoked."""
    wanted: Row = {"type": "User" if holder else "Issuer", "did": identifier}
    line.run("/api/v1/did/deleteDid", {"dids": [wanted]}, domain=domain)
    line.note(f"{identifier} is deleted from {domain}")


@click.group(cls=Group)
def schema() -> None:
    """Schemas of credentials. A schema defines the claims of a subject."""


@schema.command("add")
@click.argument("name")
@click.argument("file", type=InputFile())
@in_domain
@field_option("author", "--issuer", "issuer", expose_value=True, required=True, help="DID of the author.")
@click.option("--unsigned", is_flag=True, help="Store the schema without the author's proof.")
@json_answer
@click.pass_obj
def add_schema(line: CommandLine, *, name: str, file: Path, domain: str, issuer: str, unsigned: bool) -> None:
    """Add a JSON Schema (draft-07 or 2020-12) from a file, and print its schemaId."""
    try:
        content: JSON = json.loads(file.read_bytes())
    except OSError as error:
        raise StartError(f"{file}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise StartError(f"{file}: the schema is not valid JSON") from None
    body: Row = {"author": issuer, "name": name, "schema": content, "sign": not unsigned}
    made = line.run("/api/v1/schema/createSchema", body, domain=domain)
    line.print_answer(made, str(made["id"]))


@schema.command("list")
@in_domain
@json_form
@click.pass_obj
def list_schemas(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the schemas of a domain."""
    line.print_rows(line.listed("/api/v1/credential/credentialSchemaList", None, domain=domain), SCHEMAS, form)


@click.group(cls=Group)
def credential() -> None:
    """Credentials of holders."""


@credential.command()
@field_argument("credentialName", "name")
@in_domain
@option(CreateCredential, "issuerDid", "--issuer")
@option(CreateCredential, "holderDid", "--holder")
@option(CreateCredential, "schemaId", "--schema")
@field_option(
    "metadata",
    "--claim",
    "claims",
    multiple=True,
    expose_value=True,
    metavar="NAME=VALUE",
    help="Claim of the credential; repeatable.",
)
@option(
    CreateCredential,
    "expiry",
    "--expires",
    type=FUTURE,
    help="Expiry: a span such as 90d, or a time such as 2027-11-23; default: never.",
)
@field_option(
    "metadata.epmPassword",
    "--password",
    "password",
    metavar="-",
    expose_value=True,
    is_secret=True,
    help="Password that the holder gets with the credential. Give - to read the password from standard input.",
)
@json_answer
@pass_body
def issue(line: CommandLine, body: Row, *, domain: str, claims: tuple[str, ...], password: str | None) -> None:
    """Issue a credential and print its number."""
    check_is_dash(password, "--password")
    metadata: Row = {name: value for name, mark, value in (each.partition("=") for each in claims) if mark and name}
    if len(metadata) != len(claims) or PASSWORD in metadata:
        raise click.UsageError("--claim must be NAME=VALUE, each name once; give a password with --password -")
    if password is not None:
        metadata[PASSWORD] = line.read_secret("Password").decode("utf-8", "strict")
    body["metadata"] = metadata
    made = line.run("/api/v1/credential/createCredential", body, domain=domain)
    line.print_answer(made, str(made["id"]))


@credential.command("list")
@in_domain
@json_form
@click.pass_obj
def list_credentials(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the credentials of a domain."""
    found = line.listed("/api/v1/credential/credentialList", "credentials", domain=domain)
    line.print_rows(found, CREDENTIALS, form)


@credential.command()
@click.argument("number", metavar="ID")
@in_domain
@json_answer
@click.pass_obj
def show(line: CommandLine, *, number: str, domain: str) -> None:
    """Show a credential as a document with the issuer's proof."""
    _, document = _credential(line, number, domain)
    line.print_json(document)


@credential.command()
@click.argument("number", metavar="ID")
@in_domain
@click.pass_obj
def revoke(line: CommandLine, *, number: str, domain: str) -> None:
    """Revoke a credential permanently. If the domain is set to disconnect on revocation, the holder's sessions end."""
    vcid, document = _credential(line, number, domain)
    subject = document["credentialSubject"]
    assert isinstance(subject, dict)  # noqa: S101  the service made it
    line.run(
        "/api/v1/credential/revokecredential",
        {"vcid": vcid, "issuerDid": document["issuer"], "holderDid": subject["id"]},
        domain=domain,
    )
    line.note(f"credential {number} is revoked")


def _credential(line: CommandLine, name: str, domain: str) -> tuple[JSON, Row]:
    """Return the number of a credential of the domain, and its document. Raises NotFound."""
    found = line.run("/api/v1/credential/GetCredential", {"credentialId": name}, domain=domain)
    document = found["credential"]
    assert isinstance(document, dict)  # noqa: S101  the service made it
    return found["id"], document
