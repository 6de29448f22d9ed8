"""HTTP: the server, and what all operations share. An area declares operations and knows nothing of HTTP.

    server      listening sockets, TLS, and how the server stops
    connections which connections are held, and which one is closed to make room
    connection  one connection: octets between a trio stream, the parser and the application
    http1       requests and answers in octets, sans-io
    asgi        one request and its answer as an ASGI application sees them
    peer        what the work of a request tells its connection
    app         the operations, health, metrics and the description of the API as one application
    routing     finds the operation or the route of a request, and measures each request
    operation   how an operation is declared, and the order in which everything is checked
    content     bodies within their limits: of requests, and of large answers
    upload      reads a form with a file
    page        pages for people who hold a link instead of a token
    scope       the caller (token to organization, tenant, role) and the claims of a body
    paging      pages of lists
    problem     errors to bodies
    description the OpenAPI document; `docs` is its page, `examples` its bodies

The order of the checks is token, body, scope, domain, role, the rest. It is the same for every operation, because
`Operations` runs the checks before the area's work. A body model with a domainId that does not claim it is an error at
the start of the service.
"""
