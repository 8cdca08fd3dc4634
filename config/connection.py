"""The [kafka] sections: how to reach the brokers, and as whom."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    model_validator,
)

from config.librdkafka import ALLOWED, complaint, refusal
from config.limits import unfit
from config.values import (
    DurationText,
    GroupName,
    ReadableFile,
    Section,
    Table,
    Text,
    choice,
    duration,
    nearest,
    reason,
    refuse,
)

_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})")
_LARGEST_PORT: Final = 65_535
_PASSWORD_BYTES: Final = 65_536

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def _servers(value: object) -> tuple[str, ...]:
    servers = value.split(",") if isinstance(value, str) else value
    if not isinstance(servers, list | tuple) or not all(isinstance(one, str) for one in servers):
        raise refuse('it must be text such as "kafka-1:9092,kafka-2:9092", or a list of such text')
    found = tuple(server.strip() for server in servers)
    if not any(found):
        raise refuse('it names no broker: give host:port, such as "localhost:9092"')
    for server in found:
        _check_server(server)
    return found


def _check_server(server: str) -> None:
    if "@" in server:
        raise refuse("user and password belong into [kafka.security]: write host:port")
    if "://" in server:
        bare = server.partition("://")[2].strip("/")
        raise refuse(f'"{server}" has a scheme: write "{bare}"; see kafka.security.protocol')
    host, colon, port = server.rpartition(":")
    if not colon or (server.startswith("[") and server.endswith("]")):
        raise refuse(f'"{server}" has no port: write host:port, such as "localhost:9092"')
    if ":" in host and not host.startswith("["):
        raise refuse(f'"{server}" has more than one colon: put an IPv6 address in [ ]')
    if _HOST.fullmatch(host) is None:
        raise refuse(f'"{server}" has no valid host: write host:port')
    if re.fullmatch(r"[0-9]{1,5}", port) is None or not 1 <= int(port) <= _LARGEST_PORT:
        raise refuse(f'"{server}" has a wrong port: it must be from 1 to {_LARGEST_PORT}')


def _client(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise refuse('it must be a table of librdkafka\'s settings: { "linger.ms" = 5 }')
    flat = dict(_flatten(value))
    for name, setting in flat.items():
        if (why := refusal(name)) is not None:
            raise refuse(why, name)
        if name not in ALLOWED:
            near = nearest(name, ALLOWED)
            guess = f'did you mean "{near}"?' if near else "see its list of configuration"
            raise refuse(f"librdkafka's clients here take no such setting: {guess}", name)
        if not isinstance(setting, str | int | float):
            raise refuse("it must be text, a number, true or false", name)
        if (why := unfit(name, _as_text(setting))) is not None:
            raise refuse(why, name)
    client = {name: _as_text(setting) for name, setting in flat.items()}
    if (found := complaint(client)) is not None:
        blamed, why = found
        raise refuse(f"librdkafka refuses: {why}", *([blamed] if blamed else []))
    return client


def _flatten(table: Mapping[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return the dotted names: TOML reads ``linger.ms = 5`` without quotes as nested tables."""
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += _flatten(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", value))
    return found


def _as_text(setting: str | float) -> str:
    return str(setting).lower() if isinstance(setting, bool) else str(setting)


class SecuritySettings(Section):
    """Encryption and credentials.

    Parameters
    ----------
    protocol
        As Kafka names them.
    ca_file
        Certificates to trust, PEM; without it those of the system.
    cert_file, key_file
        The client's own certificate and key, PEM.
    mechanism, username
        Of SASL.
    password
        Never printed. After loading it also holds what stood in `password_file`.
    password_file
        File with the password; its last line break does not count.
    """

    protocol: Annotated[Protocol, choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")] = (
        "PLAINTEXT"
    )
    ca_file: ReadableFile | None = None
    cert_file: ReadableFile | None = None
    key_file: ReadableFile | None = None
    mechanism: Annotated[Mechanism, choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")] | None = None
    username: Text | None = None
    password: SecretStr | None = None
    password_file: Path | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_password(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("password_file") is None:
            return given
        if given.get("password") is not None:
            raise refuse("there is a password beside it: give one of the two", "password_file")
        return {**given, "password": _password(given["password_file"])}

    @model_validator(mode="after")
    def _fits_protocol(self) -> Self:
        sasl: dict[str, object] = {
            "mechanism": self.mechanism,
            "username": self.username,
            "password_file" if self.password_file else "password": self.password,
        }
        if self.protocol.startswith("SASL_"):
            for name, value in sasl.items():
                if value is None:
                    raise refuse(f"the protocol {self.protocol} needs it: set it", name)
            if not self.password or not self.password.get_secret_value():
                raise refuse("it is empty: set it", "password")
        tls: dict[str, object] = {
            "ca_file": self.ca_file,
            "cert_file": self.cert_file,
            "key_file": self.key_file,
        }
        for needed, settings in (("SASL_", sasl), ("SSL", tls)):
            for name, value in settings.items():
                if value is not None and needed not in self.protocol:
                    raise refuse(
                        f"the protocol {self.protocol} does not use it: set "
                        f"kafka.security.protocol to one with {needed.strip('_')}, or remove it",
                        name,
                    )
        if (self.cert_file is None) != (self.key_file is None):
            lone = "cert_file" if self.key_file is None else "key_file"
            other = "key_file" if self.key_file is None else "cert_file"
            raise refuse(f"it needs kafka.security.{other} beside it", lone)
        _check_certificates(self.ca_file, self.cert_file, self.key_file)
        return self


def _check_certificates(authority: Path | None, certificate: Path | None, key: Path | None) -> None:
    """Refuse files that Kafka's clients could not read; their own messages name no setting."""
    for name, path in (("ca_file", authority), ("cert_file", certificate)):
        if path is not None and not _holds_certificate(path):
            raise refuse("the file holds no certificate as PEM text", name)
    if certificate is None or key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except _PassphraseError:
        raise refuse(
            "the key is locked with a passphrase: give one without, such as `openssl pkey` makes",
            "key_file",
        ) from None
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise refuse("it is not the key of kafka.security.cert_file", "key_file") from error
        raise refuse("the file holds no private key as PEM text", "key_file") from error


def _holds_certificate(path: Path) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, ValueError):
        return False
    return True


class _PassphraseError(Exception):
    """A key asks for a passphrase; left alone, OpenSSL would ask at the terminal."""


def _no_passphrase() -> str:
    raise _PassphraseError


def _password(path: object) -> SecretStr:
    if not isinstance(path, str | Path) or not str(path):
        raise refuse("it must be the path of a file, in quotes", "password_file")
    try:
        with Path(path).open("rb") as file:
            text = file.read(_PASSWORD_BYTES + 1).decode()
    except UnicodeDecodeError as error:
        raise refuse("the file is not UTF-8 text", "password_file") from error
    except (OSError, ValueError) as error:
        raise refuse(f"the file cannot be read: {reason(error)}", "password_file") from error
    password = text.removesuffix("\n").removesuffix("\r")
    if not password:
        raise refuse("the file is empty", "password_file")
    if len(text.encode()) > _PASSWORD_BYTES:
        raise refuse("the file is too large for a password", "password_file")
    return SecretStr(password)


class KafkaSettings(Section):
    """The brokers, and how the job appears to them.

    Parameters
    ----------
    bootstrap_servers
        ``host:port`` each.
    group
        The consumer group; also the Faust app id and the prefix of all internal names.
    client_id, client_rack, group_instance_id
        As Kafka knows them.
    commit_interval
        Time between two transactions of a task.
    security
        Encryption and credentials.
    client
        librdkafka's own settings by name, as text.
    """

    bootstrap_servers: Annotated[
        tuple[str, ...], BeforeValidator(_servers, json_schema_input_type=str | list[str])
    ] = Field(examples=["localhost:9092"])
    group: GroupName = Field(examples=["fraud-metrics"])
    client_id: Text = "rocstream"
    client_rack: Text | None = None
    group_instance_id: GroupName | None = None
    commit_interval: Annotated[timedelta, duration("1ms", "60s"), DurationText] = timedelta(
        milliseconds=100
    )
    security: SecuritySettings = SecuritySettings()
    client: Annotated[
        Mapping[str, str],
        AfterValidator(Table),
        BeforeValidator(
            _client, json_schema_input_type=dict[str, str | bool | int | float | dict[str, Any]]
        ),
        PlainSerializer(dict, return_type=dict[str, str]),
    ] = Field(default_factory=Table)
