"""OpenID Connect with identity providers: the code flow with PKCE (RFC 7636), without any state in the service.

client    OpenIdClient: discovery, the redirect, and the code
id_token  the check of an ID token, without I/O

The console signs people in with the providers of the settings (`areas.signin`). The step-up page lets people prove a
login with the provider of their domain (`areas.factors.openid`).
"""
