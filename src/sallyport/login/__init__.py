"""What a login is, and how it is decided.

    who            User-Name to domain and principal
    lock-out       `policy.lockouts`: who failed too often is refused for a while
    first factor   the password, checked by whom the domain says; `eap` where it comes in many rounds
    rules          `policy.rules`: allow, block, or a second factor is required; reply attributes
    second factor  `second`: one login, one prompt, one Accept
    mode           monitor or enforce: what of the verdict is applied

`pipeline` takes a login through them; what each way has in common, EAP's too, is in `steps`, each a small typed
function. Their result is one `Decision`, made by `decision.decide` for live logins and for everything that asks what
would have been. A decided login goes to the `journal`, which writes the
event, the first sighting of a device, the state of a challenge and the answer in one transaction for all that arrived
meanwhile, and only then lets the answers go. `events` has what is read of them afterwards; `preview` is
the impact of enforcing. `area` puts all of it together.
"""
