"""Profiles of networks: the files that make a device join a Wi-Fi or a wired network with 802.1X, and trust only the
right server.

    profile    a profile: the networks, the EAP method, and what a device must know of the server
    trust      the server names and the authority of the server's certificate
    apple      configuration profiles for iOS, iPadOS and macOS
    windows    profiles of the wireless and wired AutoConfig services
    linux      key files of NetworkManager, and networks of wpa_supplicant
    android    Open Network Configuration for device management, and settings to type
    files      all files of a profile, by name
    signing    the signature of Apple's files (CMS)
    service    stores profiles and their links, and makes their files
    page       the page and the files behind a link

A device that does not check the server's certificate and its name sends its password to any access point of the same
SSID. So each file has the authority that issued the server's certificate, and the names in that certificate, and no
file lets the user accept another server. The names and the authority are read from the present certificate each time a
file is made; a profile can name others. At least one of its authorities must have issued the certificate. Others cause
a warning, because devices must trust the next authority before the server changes to it.

A file has no secret: no password, and no key. Enrolment of client certificates belongs to the device management. The
files of a profile depend only on the profile and on the server's certificate. So they are the same at each download,
and on each node. The UUIDs in them are derived from the UUID of the profile, so that a new file replaces the old one on
the device. Only a signature differs, because it contains its time.

The link of a profile needs no sign-in. Its last part is random, and the store has only its hash. It expires, and a new
link replaces it.
"""
