"""Credentials: issued, listed, published as revoked or not, and revoked.

A credential is a token (VC-JWT) and the same document with a proof in it; both are made once, when it is issued. A
password that is given with it is no part of either: it is sealed here for its holder alone, until the credential is
revoked.

status   the lists that tell everybody which credentials are revoked
"""
