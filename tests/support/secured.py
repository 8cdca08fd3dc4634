"""A Kafka with a listener of each kind of security, users, and access control lists."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import brokers
from certificates import Authority
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from worker.rights import NEEDED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from certificates import Pair
    from jobs import Job

    from worker.rights import Right

USER: Final = "watcher"
"""May do everything."""

GUEST: Final = "guest"
"""May do nothing but what a test grants it."""

_LISTENERS: Final = ("PLAINTEXT", "CONTROLLER", "SASL", "TLS", "OLD", "OPEN")
_PROTOCOLS: Final = ("PLAINTEXT", "PLAINTEXT", "SASL_SSL", "SSL", "SASL_SSL", "SASL_PLAINTEXT")
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Secured(NamedTuple):
    """A running broker of this kind.

    Attributes
    ----------
    broker
        Its `bootstrap_servers` are those of the plain listener, where everybody may do everything.
    sasl, tls, old, open
        Servers of the listeners SASL_SSL, SSL with client certificates, SASL_SSL with an expired
        certificate, and SASL_PLAINTEXT.
    authority, stranger
        Who signed the certificates; and somebody nobody trusts.
    client
        The client's certificate.
    password
        Of both users, with any mechanism.
    """

    broker: Any
    sasl: str
    tls: str
    old: str
    open: str
    authority: Authority
    stranger: Authority
    client: Pair
    password: str

    def admin(self) -> AdminClient:
        """Return a client that may do everything."""
        return AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})

    def close(self) -> None:
        """End the broker."""
        self.broker.close()


def start(folder: Path) -> Secured:
    """Start it; certificates go into the folder."""
    authority, stranger = Authority(folder / "ca"), Authority(folder / "stranger")
    server, old = authority.sign("broker"), authority.sign("old", expired=True)
    password = f"s3cr3t-{secrets.token_hex(8)}"
    ports = dict(zip(_LISTENERS, brokers.free_ports(len(_LISTENERS)), strict=True))
    places = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    broker = brokers.with_properties(
        _properties(places, authority, server, old, password),
        (ports["PLAINTEXT"], ports["CONTROLLER"]),
    )
    secured = Secured(
        broker,
        *(places[name] for name in ("SASL", "TLS", "OLD", "OPEN")),
        authority,
        stranger,
        authority.sign("client"),
        password,
    )
    try:
        broker.start()
        _add_users(secured)
    except BaseException:
        broker.close()
        raise
    return secured


def binding(right: Right, job: Job, operation: str = "") -> AclBinding:
    """Return the entry that gives a right to the guest, or another on what it is a right to."""
    literal = right.resource != "transactional id"
    return AclBinding(
        ResourceType[right.resource.upper().replace(" ", "_")],
        right.of(job.settings),
        ResourcePatternType.LITERAL if literal else ResourcePatternType.PREFIXED,
        f"User:{GUEST}",
        "*",
        AclOperation[operation or right.operation],
        AclPermissionType.ALLOW,
    )


def grants(job: Job) -> dict[str, AclBinding]:
    """Return the least that a worker and `check` need, under short names."""
    return {
        f"{right.operation} {right.name.removeprefix('topics.')}": binding(right, job)
        for right in NEEDED
        if "worker" in right.commands
    }


def _properties(
    places: Mapping[str, str], authority: Authority, server: Pair, old: Pair, password: str
) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name in (USER, GUEST))
    properties = {
        "listeners": ",".join(f"{name}://{place}" for name, place in places.items()),
        "advertised.listeners": ",".join(
            f"{name}://{place}" for name, place in places.items() if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in zip(_LISTENERS, _PROTOCOLS, strict=True)
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER};User:CN=client",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.both),
        "listener.name.old.ssl.keystore.type": "PEM",
        "listener.name.old.ssl.keystore.location": str(old.both),
        "listener.name.tls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    }
    for name in ("sasl", "old", "open"):
        of = f"listener.name.{name}"
        properties[f"{of}.plain.sasl.jaas.config"] = f"{_PLAIN} required {users};"
        for bits in (256, 512):
            properties[f"{of}.scram-sha-{bits}.sasl.jaas.config"] = f"{_SCRAM} required;"
    return properties


def _add_users(secured: Secured) -> None:
    admin = secured.admin()
    password = secured.password.encode()
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        # The broker takes one credential of a user in a request.
        info = ScramCredentialInfo(mechanism, 4096)
        asked = [UserScramCredentialUpsertion(name, info, password) for name in (USER, GUEST)]
        for future in admin.alter_user_scram_credentials(asked).values():
            future.result(20)
