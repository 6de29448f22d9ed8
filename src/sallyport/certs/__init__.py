"""Certificates of the service (EAP, RadSec) and of its peers.

    authority    a certificate authority that signs certificates for supplicants, and reads peers' certificates
    folder       `certs/` in the data directory: the authority and every certificate that it has signed
    credentials  the files that the listeners use; renewed files are used without a restart
    bundle       PKCS#12 and Apple's configuration profile, for the device of a person
    cli          `sallyport cert`

All files are PEM files, which other programs can read. No command needs the running service. If the database is lost,
the certificates remain. If there are several nodes, each node has a copy of all files; see `nodes.certificates`.
"""
