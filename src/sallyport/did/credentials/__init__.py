"""Credentials and their schemas. Credentials are issued, listed, assigned to wallets, revoked, and found for a login.

A credential is stored as a token (VC-JWT) and as the same document with a proof. Both forms are created once, when the
credential is issued. A password that is issued with the credential is in neither form. It is sealed, is given only to
the holder, and is deleted when the credential is revoked.

credential  values
bodies      requests and answers
operations  /api/v1/credential/*, /api/v1/schema/createSchema
service     rules of credentials
schemas     rules of schemas
check       JSON Schema (drafts 07 and 2020-12) at a bounded cost
keywords    the keywords of JSON Schema, whose evaluation is charged to a budget
status      the status lists, which show verifiers the revoked credentials
repo        SQL, including the holder of a user and the users of a holder
"""
