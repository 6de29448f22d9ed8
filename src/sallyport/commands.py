"""What the command line may ask of the service: the commands of all areas, over the same services as the API's."""

from sallyport.app import App
from sallyport.audit import commands as audit_commands
from sallyport.base import log_commands
from sallyport.base.clock import now_us
from sallyport.base.command import Commands
from sallyport.certs import commands as cert_commands
from sallyport.certs.directory import Directory as CertificateDirectory
from sallyport.did import commands as did_commands
from sallyport.directory import commands as directory_commands
from sallyport.domains import commands as domain_commands
from sallyport.dynamic import commands as dynamic_commands
from sallyport.endpoints.agents import commands as agent_commands
from sallyport.endpoints.groups import commands as group_commands
from sallyport.endpoints.instances import commands as instance_commands
from sallyport.endpoints.users import commands as user_commands
from sallyport.events import commands as event_commands
from sallyport.inventory.clients import commands as client_commands
from sallyport.inventory.devices import commands as device_commands
from sallyport.inventory.sessions import commands as session_commands
from sallyport.listen import commands as listen_commands
from sallyport.login.first import commands as first_commands
from sallyport.mfa import commands as provider_commands
from sallyport.passwords import commands as policy_commands
from sallyport.policy.bypass import commands as bypass_commands
from sallyport.policy.lockouts import commands as lockout_commands
from sallyport.policy.rules import commands as rule_commands
from sallyport.preview import commands as preview_commands
from sallyport.store import commands as store_commands
from sallyport.tenancy import commands as token_commands
from sallyport.tenancy.keys import commands as key_commands


def commands(app: App) -> Commands:
    """Every command of the control socket, by name."""

    def find_domain(name: str) -> int:
        return app.domains.anywhere(name).id

    return Commands(
        [
            token_commands.commands(app.tenancy, now_us),
            key_commands.commands(
                app.keys,
                app.tenancy,
                now_us,
                tenant_domain=lambda tenant_id, name: app.domains.named(tenant_id, name).id,
                find_domain=find_domain,
                find_instance=app.instances.find,
                configure=app.agent_file,
            ),
            cert_commands.commands(
                CertificateDirectory(app.settings.data_dir.absolute()),
                app.issued,
                app.tenancy,
                app.note,
                app.revocations.revoke_certified,
            ),
            audit_commands.commands(app.audit, app.tenancy, find_domain),
            domain_commands.commands(app.domains, app.enforcement, app.tenancy),
            preview_commands.commands(app.preview, find_domain),
            client_commands.commands(
                app.clients, app.tenancy, lambda tenant_id, name: app.domains.named(tenant_id, name).id
            ),
            device_commands.commands(app.devices, app.domains.anywhere, app.dictionary.name, now_us),
            session_commands.commands(app.sessions, app.domains.anywhere, app.value_name),
            dynamic_commands.commands(app.dynamic, find_domain),
            instance_commands.commands(app.instances, find_domain),
            agent_commands.commands(app.agents, find_domain),
            group_commands.commands(app.groups, find_domain),
            user_commands.commands(
                app.users,
                app.accounts,
                app.seeds,
                find_domain,
                app.enrolment_link,
            ),
            directory_commands.commands(app.directory, find_domain),
            first_commands.commands(app.logins.first, app.logins.trials, app.domains),
            policy_commands.commands(app.policies, app.tenancy),
            bypass_commands.commands(app.logins.bypass, find_domain),
            rule_commands.commands(app.rules, find_domain),
            event_commands.commands(app.events, app.domains.anywhere, now_us),
            lockout_commands.commands(app.logins.lockouts, find_domain),
            listen_commands.commands(app.senders, lambda host: app.clients.table.find(host) is not None),
            did_commands.commands(app.issuing, app.domains.anywhere, now_us),
            store_commands.commands(app.copies, app.rotation),
            log_commands.commands(),
            provider_commands.commands(app.logins.providers),
        ]
    )
