"""Presentations: a holder shows a credential, once, to the verifier that asked for it.

    issuePR, or a login whose second factor is the wallet, opens a request: a definition and a nonce, for a while
    the wallet polls it, its person agrees, and it sends a presentation that holder, audience and nonce bind to it
    the presentation is verified to the last claim; the request is answered, for good, in the transaction that found the
    credential valid; the login that waits for it wakes

request     values
bodies      requests and answers of the operations
operations  /api/v1/verifierService/*, /api/v1/walletService/...Presentation...
definition  the presentation definition, made here or read from a request
exchange    whether a credential meets a definition (DIF Presentation Exchange 2.1.1)
evidence    verification of a submitted presentation, in each of its shapes
verifier    the verifier's side: requests for an endpoint
service     the holder's side: poll, submit, decline
prompts     open requests: waiting for an answer, and withdrawal; requests as the second factor of logins
repo        SQL
"""
