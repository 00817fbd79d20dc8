"""Builds how each channel of the configuration is reached; nothing is connected or read before it is used."""

from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.gateway.notices.outcome import Way
from holdfast.gateway.notices.pointed import Pointed
from holdfast.gateway.outgoing import Egress
from holdfast.ports import Ports

if TYPE_CHECKING:
    from holdfast.upstreams.secrets.wallet import Wallet


def ways(config: Config, ports: Ports, egress: Egress, wallet: "Wallet | None") -> dict[str, Way]:
    made: dict[str, Way] = {}
    if not config.channels:
        return made
    from holdfast.gateway.notices.mail import Mail  # what they need takes a while to import
    from holdfast.gateway.notices.webhook import Webhook

    for name, channel in config.channels.items():
        whose = f"channels.{name}"
        if (hook := channel.webhook) is not None:
            outgoing = egress.outgoing(whose, hook.url)
            made[name] = Webhook(hook.url, Pointed(hook.secret, wallet), outgoing, ports.clock.now)
        elif (mail := channel.mail) is not None:
            password = None if mail.password is None else Pointed(mail.password, wallet)
            guard = egress.guard(whose, f"https://{mail.host}:{mail.where}")
            made[name] = Mail(mail, password, guard, config.folder)
    return made
