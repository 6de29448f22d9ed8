"""What the product does, one folder for each subject.

    login       the path of a request: sockets, factors, the decision, the record of it
    policy      login rules, MAC bypass, lock-outs; events: the records of logins, and where they are sent
    preview     what enforce mode would decide; dynamic: the end or change of a session (RFC 5176)
    mfa         the MFA providers
    tenancy     organizations, tenants, access tokens, API keys; signin: people in the console; audit: the trail
    domains     domains, their modes and realms
    clients     RADIUS clients; devices: what they send for, and the stations behind them; sessions: accounting
    users       endpoint users, groups and instances; agents: the service's side of endpoint agents
    directory   people, groups and units that are imported; passwords: password policies
    did         decentralized identity: DIDs, credentials, wallets, presentations

The entrance of an area is `area`: one object that declares all that the area adds to the service (`entrance.Area`). The
other files have the same names in each area: a module of values, `bodies` (requests and answers), `repo` (SQL),
`service` (business logic), `operations` (declarations) and `cli` (commands).
"""
