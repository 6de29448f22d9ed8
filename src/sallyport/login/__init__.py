"""The login path: from an Access-Request to its decision.

    identity       User-Name to domain and principal, and the groups that login rules see
    first/         first factor: checks the password, here or at another server
    eap/           the first factor by EAP, in many rounds
    second/        second factor: one login, one prompt, one Accept
    decision       rules, second factor and mode to one `Decision`; the attributes of an Access-Reject
    pipeline       takes a login through these steps, and through login rules, MAC bypass and lock-outs (`policy`)
    journal        writes decided logins, then sends their answers

One decision function, `decision.decide`, serves live logins, monitoring and the impact preview. The journal writes the
event, the first sighting of a device, the state of a challenge and the answer in one transaction for all requests that
arrived meanwhile. The answers leave after its commit.
"""
