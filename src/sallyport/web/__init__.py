"""The HTTP server, and the parts that all operations share. An area declares operations and does not handle HTTP
itself.

    server      listening sockets, TLS, and the shutdown of the server
    connections the connections that wait for their peers; one of them can be closed to make room;
                `parked`: a request that waits does not count as a connection
    connection  one connection: octets between a trio stream, the parser and the application
    http1       parser of requests and framing of answers, sans-io
    asgi        one request and its answer for an ASGI application
    app         composition of operations, health, metrics and API description into one application
    routing     routing of requests, and measurement of each request
    operation   declaration of operations, and the checks before each operation
    interface   the operations of the interface document, which treat unknown fields differently
    content     bodies with limits: request bodies, and large answers
    upload      forms with a file
    page        pages for people who open a link with a secret, without a token
    bodies      bodies of requests and answers: types of fields, the ids that a body claims, pages of lists
    scope       the caller (token to organization, tenant, role), and `Gate`, which checks scope, role and limits
    problem     conversion of errors to error bodies
    description the OpenAPI document; `docs` is its page, `examples` its bodies

Each request is checked in the same order: token, body, scope, domain, role, then everything else. `Operations` runs the
checks before the area's code. If a body model has a domainId but does not claim it, the service does not start.
"""
