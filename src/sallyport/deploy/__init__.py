"""The installation of the service on a machine: its user, settings file, data directory, and units for systemd.

The paths and names are defined in host/systemd.py, because every command needs them to find the installation. A
container and the Debian package use the same paths and names.

    systemd         the templates of the units, which start a program in /opt/sallyport
    units           the text of each unit, and of the drop-ins that the settings require
    settings_file   the text of /etc/sallyport/sallyport.toml
    account         the service's user, and the checks that this user can run and read the necessary files
    install         the steps of `server install`
    uninstall       the steps of `server uninstall`
    cli             the commands `server install` and `server uninstall`
    operations      the local operation that shows the settings
    debian, compose, Containerfile   the Debian package, and the container with its databases
"""
