"""Presentations: a holder presents a credential once, to the verifier that requested it.

1. The operation issuePR opens a request. A login opens a request if its second factor is the wallet. A request contains
   a definition of the wanted credential and a nonce, and is open for a short time.
2. The wallet polls the request. When the user agrees, the wallet sends a presentation. The holder's signature covers
   the presentation, and the audience and nonce of the request.
3. The service verifies the whole presentation. One transaction checks the credential's status and closes the request
   permanently. The login that waits for the request continues.

request     values: requests and their states
bodies      requests and answers of the operations
operations  /api/v1/verifierService/*, /api/v1/walletService/...Presentation...
definition  presentation definitions: create them, or read them from a request
exchange    checks whether a credential meets a definition (DIF Presentation Exchange 2.1.1)
evidence    verifies a submitted presentation in each of its forms
verifier    the verifier's side: create requests for access to an instance or group
service     the holder's side: poll, submit, decline
prompts     requests as the second factor of logins; waits for open requests, and withdraws them
repo        SQL
"""
