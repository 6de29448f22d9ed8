"""Server certificates of domains for EAP, beside the certificate of the installation.

    certificate  the row of a certificate, and what answers show of it
    service      the certificates of all domains in memory, and their changes; a change applies to the next conversation
    repo         SQL

`certs.supplicants` finds the faults of a certificate for each kind of supplicant.

A tenant brings its own certificates: its supplicants then check a name of the tenant's, and need no authority of the
installation. All nodes share the rows. The private key is sealed, and no answer contains it.

TLS inside EAP has no SNI. So the outer identity selects the certificate: its realm selects the domain (an identity
without a realm belongs to the default domain of the RADIUS client), and then the certificate for this realm, or else
the certificate for the whole domain. A domain without certificates uses that of the installation (`sallyport cert`).

The certificate of the installation signs RadSec too. Certificates of domains are for EAP only.
"""
