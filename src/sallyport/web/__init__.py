"""What all HTTP operations share; a slice declares operations and knows nothing of HTTP.

    server      listens, accepts, stops; TLS; how many connections there may be
    connection  one connection with an end to everything; no peer can end more than its own
    inbox       a request's body on its way to the app
    app         puts the operations, health, metrics and the description of the API together
    operation   how an operation is declared, and the one order in which everything is checked
    body        reads a body of one content type, up to a limit
    page        pages for people who hold a link instead of a token
    scope       who calls (token to organization, tenant, role) and which bodies say where they belong
    paging      pages of lists
    problem     errors to bodies, once
    docs        the API's description for people, made without any outside host
    observe     one measurement for each request

The order of the checks is token, body, scope, domain, role, the rest. It is the same for every operation because
`Operations` runs it before the slice's work sees anything; a body that has a domainId and does not say so is an error
when the service starts, not a hole.
"""
