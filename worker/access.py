"""Why a broker that is there does not let us in: found out by knocking at its door.

librdkafka tells of a certificate only that it could not be verified, and of a listener with
another protocol only that the connection broke. So when nothing answers, one connection is made
here, with the standard library, to learn which setting does not fit.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from typing import TYPE_CHECKING, Final

from config.errors import RocstreamError, SettingsError
from worker.credentials import tls_context

if TYPE_CHECKING:
    from config import SecuritySettings, Settings

KNOCK_SECONDS: Final = 2.0
_ALERT_SECONDS: Final = 0.5
"""A server that refuses the client's certificate says so behind the handshake, and at once."""

_SERVERS: Final = 3
"""Servers that are knocked at, at the most."""

_PLACE: Final = re.compile(r"^\w+://([^/\s]+)/")
_OFFERED: Final = re.compile(r"supported mechanisms: *([\w,-]*)")
_EXPIRED, _NOT_YET = 10, 9
_WRONG_NAME: Final = frozenset({62, 64})
_UNSUPPORTED_MECHANISM: Final = 33
_CORRELATION: Final = 0x726F63
_HEAD: Final = struct.Struct(">iih")
"""Of an answer: its size, the number of its request, an error."""

_MECHANISM: Final = re.compile(r"[A-Z][A-Z0-9-]+")


class CertificateError(RocstreamError):
    """The broker's certificate is not valid now: to be repaired there."""


class RefusedError(SettingsError):
    """A broker is there and the settings do not let us in."""


def refusal(settings: Settings, told: str = "") -> RocstreamError | None:
    """Return what keeps us out, when it is not that no broker is there. Blocks some seconds.

    Parameters
    ----------
    settings
        The job's settings; only ``[kafka]`` is used.
    told
        What librdkafka says of its last attempt, with the address at its beginning.

    Returns
    -------
    RefusedError or CertificateError or None
        None when no broker is there, or nothing is wrong with how we come.
    """
    kafka = settings.kafka
    place = _PLACE.match(told)
    if "SASL" in told and place is not None:
        return _sasl_refusal(kafka.security, place[1], told)
    for server in kafka.bootstrap_servers[:_SERVERS]:
        try:
            connection = _connect(server)
        except OSError:
            continue
        with connection:
            try:
                return _knock(kafka.security, server, connection)
            except OSError:
                # It broke in a way that tells nothing.
                continue
    return None


def _place(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def _connect(server: str) -> socket.socket:
    return socket.create_connection(_place(server), KNOCK_SECONDS)


def _sasl_refusal(security: SecuritySettings, server: str, told: str) -> RefusedError | None:
    if "mechanism handshake failed" in told:
        offered = _OFFERED.search(told)
        if offered is not None and offered[1]:
            return RefusedError(
                f'kafka.security.mechanism = "{security.mechanism}": the broker at {server} does '
                f"not take it: set it to one of {offered[1].replace(',', ', ')}"
            )
        return _wrong_protocol(
            security,
            server,
            "asks for no user and password",
            "SSL" if security.protocol == "SASL_SSL" else "PLAINTEXT",
        )
    if "authentication" not in told.lower():
        return None
    password = "password" if security.password_file is None else "password_file"
    return RefusedError(
        f'kafka.security.username = "{security.username}": the broker at {server} does not take '
        f"this user with the password given ({security.mechanism}): correct the name or "
        f"kafka.security.{password}"
    )


def _knock(
    security: SecuritySettings, server: str, connection: socket.socket
) -> RocstreamError | None:
    if security.protocol.endswith("SSL"):
        return _shake_hands(security, server, connection)
    sasl = security.protocol.startswith("SASL")
    offered = None if sasl else _mechanisms(connection)
    if offered:
        return _wrong_protocol(
            security, server, f"asks for user and password ({offered})", "SASL_PLAINTEXT"
        )
    if offered is None and _speaks_tls(server):
        return _wrong_protocol(
            security, server, "speaks TLS", "SASL_SSL" if sasl else "SSL", "SASL_SSL"
        )
    return None


def _shake_hands(
    security: SecuritySettings, server: str, connection: socket.socket
) -> RocstreamError | None:
    host, _ = _place(server)
    try:
        with tls_context(security).wrap_socket(connection, server_hostname=host) as tls:
            if security.protocol == "SSL" and (offered := _mechanisms(tls)):
                return _wrong_protocol(
                    security, server, f"asks for user and password ({offered})", "SASL_SSL"
                )
            tls.settimeout(_ALERT_SECONDS)
            tls.recv(1)
    except ssl.SSLCertVerificationError as error:
        return _untrusted(security, server, error)
    except TimeoutError:
        return None
    except ssl.SSLError as error:
        return _broken_handshake(security, server, error.reason or "")
    except ConnectionError:
        return _broken_handshake(security, server, "EOF")
    return None


def _broken_handshake(security: SecuritySettings, server: str, why: str) -> RocstreamError | None:
    if "WRONG_VERSION" in why or "EOF" in why or "RECORD_LAYER" in why:
        plain = "SASL_PLAINTEXT" if security.protocol.startswith("SASL") else "PLAINTEXT"
        return _wrong_protocol(security, server, "speaks no TLS", plain)
    if "ALERT" in why and ("CERT" in why or "UNKNOWN_CA" in why):
        if security.cert_file is None:
            return RefusedError(
                f"kafka.security.cert_file is missing: the broker at {server} asks for a "
                "certificate of ours: give it, with kafka.security.key_file"
            )
        return RefusedError(
            f'kafka.security.cert_file = "{security.cert_file}": the broker at {server} does not '
            f"take this certificate ({_words(why)}): give one of an authority that it trusts"
        )
    return None


def _untrusted(
    security: SecuritySettings, server: str, error: ssl.SSLCertVerificationError
) -> RocstreamError:
    if error.verify_code in {_EXPIRED, _NOT_YET}:
        when = "has expired" if error.verify_code == _EXPIRED else "is not valid yet"
        return CertificateError(
            f"the certificate of the broker at {server} (kafka.bootstrap_servers), or one that it "
            f"rests on, {when}: renew it there, or correct this machine's clock"
        )
    if error.verify_code in _WRONG_NAME:
        return RefusedError(
            f'kafka.bootstrap_servers = "{server}": the certificate of the broker there is '
            f"{_names(security, server)}: write a name that it has, or have the broker get a "
            "certificate for this one"
        )
    why = f"({error.verify_message.rstrip('.')})"
    if security.ca_file is None:
        return RefusedError(
            f"kafka.security.ca_file is missing: the certificate of the broker at {server} is "
            f"not of an authority that this system trusts {why}: give the file with its authority"
        )
    return RefusedError(
        f'kafka.security.ca_file = "{security.ca_file}": the certificate of the broker at '
        f"{server} is not of an authority in it {why}: give the file with its authority"
    )


def _names(security: SecuritySettings, server: str) -> str:
    """Return what the certificate is for: it is asked for once more, its name unchecked."""
    context = tls_context(security)
    context.check_hostname = False
    try:
        with (
            _connect(server) as connection,
            context.wrap_socket(connection) as tls,
        ):
            certificate = tls.getpeercert() or {}
    except OSError:
        return "for another name"
    names = [entry[1] for entry in certificate.get("subjectAltName", ())]
    return f"for {', '.join(map(str, names[:5]))}" if names else "for another name"


def _wrong_protocol(
    security: SecuritySettings, server: str, what: str, *better: str
) -> RefusedError:
    choices = " or ".join(f'"{protocol}"' for protocol in dict.fromkeys(better))
    return RefusedError(
        f'kafka.security.protocol = "{security.protocol}": the listener at {server} {what}: set '
        f"it to {choices}, or take the port of another listener"
    )


def _speaks_tls(server: str) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    # Nothing is said on this connection: it only shows whether there is TLS.
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            _connect(server) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except OSError as error:
        return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


def _mechanisms(connection: socket.socket) -> str | None:
    """Return the SASL mechanisms that a listener asks for, "" when none, None without an answer.

    Of all requests, SaslHandshake (17, version 1) is one that a listener answers in any case.
    """
    connection.settimeout(KNOCK_SECONDS)
    request = struct.pack(">hhihh", 17, 1, _CORRELATION, -1, 0)
    try:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.recv(1024)
    except (TimeoutError, ConnectionError, ssl.SSLEOFError):
        return None
    if len(answer) < _HEAD.size:
        return None
    _, correlation, error = _HEAD.unpack_from(answer)
    if correlation != _CORRELATION:
        return None
    offered = answer[_HEAD.size + 4 :].decode("latin-1")
    return ", ".join(_MECHANISM.findall(offered)) if error == _UNSUPPORTED_MECHANISM else ""


def _words(reason: str) -> str:
    return reason.rpartition("ALERT_")[2].replace("_", " ").lower()
