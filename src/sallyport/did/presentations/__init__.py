"""Presentations: a holder presents a credential once, to the verifier that requested it.

1. issuePR opens a request, or a login whose second factor is the wallet: a definition and a nonce, for a short time.
2. The wallet polls the request. When the user agrees, the wallet sends a presentation with the request's audience and
   nonce, signed by the holder.
3. The service verifies the presentation in full. One transaction checks the credential's status and closes the request
   permanently. The login that waits for the request continues.

request     values
bodies      requests and answers of the operations
operations  /api/v1/verifierService/*, /api/v1/walletService/...Presentation...
definition  the presentation definition, made here or read from a request
exchange    whether a credential meets a definition (DIF Presentation Exchange 2.1.1)
evidence    verification of a submitted presentation, in each of its forms
verifier    the verifier's side: requests for an endpoint
service     the holder's side: poll, submit, decline
prompts     open requests: wait for an answer, and withdraw; requests as the second factor of logins
repo        SQL
"""
