"""The HTTP server, and the parts that all operations share. An area declares operations and does not handle HTTP
itself.

    server      listening sockets, TLS, and the shutdown of the server
    connections the limits for peers, and the connections that wait for them: one can be closed to make room;
                `parked`: a request that waits does not count as a connection
    connection  one connection, and its requests and answers for the ASGI application
    http1       parser of requests and framing of answers, sans-io
    app         composition of operations, health, metrics and API description into one application
    operation   declaration of operations
    handling    the way of a request to its operation: measured, found by its path, checked, run, answered
    interface   the operations of the interface document, which treat unknown fields differently
    content     bodies with limits: request bodies, and large answers
    upload      forms with a file
    link_page   pages for people who open a link with a secret, without a token
    people      the separate site for people: step-ups and self-service
    bodies      bodies of requests and answers: types of fields, the ids that a body claims, pages of lists
    scope       the caller (token to organization, tenant, role), and `Gate`, which checks scope, role and limits
    problem     conversion of errors to error bodies
    description the OpenAPI document; `docs` is its page, `examples` its bodies

Each request is checked in the same order: token, body, scope, domain, role, then everything else. `Operations` runs the
checks before the area's code. If a body model has a domainId but does not claim it, the service does not start.
"""
