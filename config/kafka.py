"""What the settings mean to Kafka's clients: dicts for librdkafka, in its own names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from config.librdkafka import CONSUMER, PRODUCER

if TYPE_CHECKING:
    from config.connection import SecuritySettings
    from config.settings import Settings

_OTHER_SIDE = {"producer": CONSUMER, "consumer": PRODUCER, "admin": PRODUCER | CONSUMER}


def librdkafka(
    settings: Settings, side: Literal["producer", "consumer", "admin"] | None = None
) -> dict[str, str]:
    """Return how any client of confluent-kafka reaches the brokers.

    Parameters
    ----------
    settings
        Of the job.
    side
        The kind of client: what [kafka.client] says for other kinds is left out, since
        librdkafka would warn of it. None: everything.

    Returns
    -------
    dict
        A new one, to add the client's own settings to. It holds the password: do not log it.
    """
    kafka = settings.kafka
    unused = _OTHER_SIDE.get(side or "", frozenset())
    client = {
        **{name: value for name, value in kafka.client.items() if name not in unused},
        "bootstrap.servers": ",".join(kafka.bootstrap_servers),
        "client.id": kafka.client_id,
        **_security(kafka.security),
    }
    if kafka.client_rack is not None:
        client["client.rack"] = kafka.client_rack
    return client


def _security(security: SecuritySettings) -> dict[str, str]:
    password = security.password
    values = {
        "security.protocol": security.protocol,
        "ssl.ca.location": security.ca_file,
        "ssl.certificate.location": security.cert_file,
        "ssl.key.location": security.key_file,
        "sasl.mechanism": security.mechanism,
        "sasl.username": security.username,
        "sasl.password": None if password is None else password.get_secret_value(),
    }
    return {name: str(value) for name, value in values.items() if value is not None}
