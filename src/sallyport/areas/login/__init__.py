"""The login path. It leads from an Access-Request to the decision on the login.

    listen/        sockets, and the exchange from a datagram to its answer
    identity       the domain and principal of a User-Name, and the groups for login rules
    first/         first factor: checks the password in this service (`password.check_password`) or by another server
    login          a `Login`: its frozen `Arrival` (the request), its progress, and its frozen `Answer`
    eap/           logins by EAP, in many rounds; it uses the pipeline
    second/        second factor: each login has one prompt and one Access-Accept
    decision       the `Decision` by rules, second factor and mode; the attributes of an Access-Reject
    pipeline       takes a login through these steps, and through login rules, MAC bypass and lock-outs (`policy`)
    second_step    asks the user for the second factor, and decides again after the wait
    rows           the rows of a decided login: its event and its stored answer
    limit          changes an Access-Accept into an Access-Reject if the user has too many parallel sessions
    journal        stores decided logins; their answers are sent after that

One decision function, `decision.decide`, serves live logins, monitoring and the impact preview. For each login the
journal stores the event, the first sighting of a device, the state of a challenge, and the answer in one transaction.
Logins that are decided while a transaction runs are stored together in the next one. An answer is sent after its
transaction was committed.
"""
