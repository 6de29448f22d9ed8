"""The schema's history: one module for each step, in order. A step that was released is never changed."""

from sqlite_utils import Migrations

from sallyport.store.migrations import (
    m0001_inventory,
    m0002_mfa,
    m0003_login_rules,
    m0004_totp,
    m0005_events,
    m0006_enforcement,
    m0007_posture,
    m0008_audit,
    m0009_first_factors,
    m0010_sessions,
    m0011_endpoints,
    m0012_passwords,
    m0013_lockouts,
    m0014_radsec,
    m0015_dynamic,
    m0016_directories,
    m0018_directory_schedules,
    m0019_api_keys,
    m0020_agents,
    m0022_credentials,
    m0023_credential_places,
    m0024_wallets,
    m0026_outlets,
    m0027_bypass,
    m0028_agent_accounts,
    m0029_did_pages,
    m0030_directory_removals,
    m0031_outlet_places,
    m0032_state_keys,
    m0034_list_parts,
    m0036_device_parts,
    m0037_short_search,
    m0038_directory_search,
    m0042_composed_names,
)

ALL = Migrations("sallyport")
ALL(name="m0001_inventory")(m0001_inventory.apply)
ALL(name="m0002_mfa")(m0002_mfa.apply)
ALL(name="m0003_login_rules")(m0003_login_rules.apply)
ALL(name="m0004_totp")(m0004_totp.apply)
ALL(name="m0005_events")(m0005_events.apply)
ALL(name="m0006_enforcement")(m0006_enforcement.apply)
ALL(name="m0007_posture")(m0007_posture.apply)
ALL(name="m0008_audit")(m0008_audit.apply)
ALL(name="m0009_first_factors")(m0009_first_factors.apply)
ALL(name="m0010_sessions")(m0010_sessions.apply)
ALL(name="m0011_endpoints")(m0011_endpoints.apply)
ALL(name="m0012_passwords")(m0012_passwords.apply)
ALL(name="m0013_lockouts")(m0013_lockouts.apply)
ALL(name="m0014_radsec")(m0014_radsec.apply)
ALL(name="m0015_dynamic")(m0015_dynamic.apply)
ALL(name="m0016_directories")(m0016_directories.apply)
ALL(name="m0018_directory_schedules")(m0018_directory_schedules.apply)
ALL(name="m0019_api_keys")(m0019_api_keys.apply)
ALL(name="m0020_agents")(m0020_agents.apply)
ALL(name="m0022_credentials")(m0022_credentials.apply)
ALL(name="m0023_credential_places")(m0023_credential_places.apply)
ALL(name="m0024_wallets")(m0024_wallets.apply)
ALL(name="m0026_outlets")(m0026_outlets.apply)
ALL(name="m0027_bypass")(m0027_bypass.apply)
ALL(name="m0028_agent_accounts")(m0028_agent_accounts.apply)
ALL(name="m0029_did_pages")(m0029_did_pages.apply)
ALL(name="m0030_directory_removals")(m0030_directory_removals.apply)
ALL(name="m0031_outlet_places")(m0031_outlet_places.apply)
ALL(name="m0032_state_keys")(m0032_state_keys.apply)
ALL(name="m0034_list_parts")(m0034_list_parts.apply)
ALL(name="m0036_device_parts")(m0036_device_parts.apply)
ALL(name="m0037_short_search")(m0037_short_search.apply)
ALL(name="m0038_directory_search")(m0038_directory_search.apply)
ALL(name="m0042_composed_names")(m0042_composed_names.apply)
