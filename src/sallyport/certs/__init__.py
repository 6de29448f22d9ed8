"""Certificates: of the service itself (EAP, RadSec) and of those who show one to it.

authority  a certificate authority: what it signs, and how certificates have to look for supplicants to take them
directory  `certs/` in the data directory, where the authority of a start lies with everything that it has signed
service    which files the listeners use now; a renewal holds without a restart
cli        `sallyport cert`

Everything is a PEM file, since that is what other programs take, and files are all that there is: no command needs the
running service, and no certificate is lost with the database.
"""
