"""The people of directories as logins see them."""
