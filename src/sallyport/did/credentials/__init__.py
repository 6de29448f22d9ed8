"""Credentials and their schemas: issued, listed, assigned to wallets, revoked, and found for a login.

A credential is a token (VC-JWT) and the same document with a proof in it; both are made once, when it is issued. A
password that is given with it is no part of either: it is sealed for its holder alone, until the credential is revoked.

credential  values
bodies      requests and answers
operations  /api/v1/credential/*, /api/v1/schema/createSchema
service     rules of credentials
schemas     rules of schemas
check       JSON Schema (drafts 07 and 2020-12) at a bounded cost; `keywords` charges a run to a budget
status      the status lists, by which verifiers find revoked credentials
repo        SQL, also that which finds the holder of a user, and the users of a holder
"""
