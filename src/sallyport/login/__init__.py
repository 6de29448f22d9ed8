"""What a login is, and how it is decided.

    who            User-Name to domain and principal
    first factor   the password, checked by whom the domain says
    mode           monitor or enforce: what of the verdict is applied

Each step is a small typed function of `pipeline`; their result is one `Decision`. There is one decision function, for
live logins and for everything that asks what would have been. A decided login goes to the `journal`, which writes the
event, the first sighting of a device and the answer in one transaction for all that arrived meanwhile, and only then
lets the answers go.
"""
