"""Credentials and their schemas. Credentials are issued, listed, assigned to wallets, revoked, and found for a login.

A credential is stored in two forms: a token (VC-JWT), and a JSON document with a proof. Both forms are created when the
credential is issued. A credential may come with a password, which is in neither form. The password is stored encrypted,
is given only to the holder, and is deleted when the credential is revoked.

credential  values: a credential, a schema
bodies      the bodies of requests and answers
operations  /api/v1/credential/*, /api/v1/schema/createSchema
service     rules of credentials
schemas     rules of schemas
check       checks schemas and claims (JSON Schema drafts 07 and 2020-12), and limits the cost of each check
keywords    the keywords of JSON Schema, with a budget for their evaluation
status      the status lists: a verifier sees in them which credentials are revoked
repo        SQL, including the search for the holder of a user and for the users of a holder
"""
