"""[kafka.security], and the dicts that Kafka's clients get."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
from certificates import Authority

from config.kafka import librdkafka
from config.librdkafka import (
    ALLOWED,
    ELSEWHERE,
    OWNED,
    complaint,
    refusal,
)
from worker.credentials import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import config

    Load = Callable[..., config.Settings]
    Refusal = Callable[..., str]

SASL = 'protocol = "sasl_ssl"\nmechanism = "scram-sha-512"\nusername = "me"\n'


def test_a_password_is_never_printed(load: Load) -> None:
    found = load(security=f'{SASL}password = "hunter2"')
    for text in (repr(found), str(found), str(found.model_dump()), found.model_dump_json()):
        assert "hunter2" not in text
    assert librdkafka(found)["sasl.password"] == "hunter2"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_password_is_read_from_its_file(load: Load, tmp_path: Path, end: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(b" p\xc3\xa4ss " + end.encode())
    security = load(security=f"{SASL}password_file = '{file}'").kafka.security
    assert security.password is not None
    assert security.password.get_secret_value() == " päss "
    assert security.password_file == file


def test_a_password_file_that_does_not_do_is_refused(refusal: Refusal, tmp_path: Path) -> None:
    file = tmp_path / "password"
    start = f'kafka.security.password_file = "{file}": '

    def said(content: bytes | None = None, more: str = "") -> str:
        if content is not None:
            file.write_bytes(content)
        found = refusal(security=f"{SASL}password_file = '{file}'\n{more}")
        assert found.startswith(start)
        return found.removeprefix(start)

    assert said() == "the file cannot be read: No such file or directory"
    assert said(b"\n") == "the file is empty"
    assert said(b"\xff") == "the file is not UTF-8 text"
    assert said(b"x" * 65_537) == "the file is too large for a password"
    both = "there is a password beside it: give one of the two"
    assert said(b"x", more='password = "x"') == both


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            'protocol = "sasl_ssl"',
            "mechanism is missing: the protocol SASL_SSL needs it: set it",
        ),
        (
            'protocol = "sasl_ssl"\nmechanism = "PLAIN"',
            "username is missing: the protocol SASL_SSL needs it: set it",
        ),
        (SASL, "password is missing: the protocol SASL_SSL needs it: set it"),
        (f'{SASL}password = ""', "password = (not shown): it is empty: set it"),
        (
            'username = "me"',
            (
                'username = "me": the protocol PLAINTEXT does not use it: set '
                "kafka.security.protocol to one with SASL, or remove it"
            ),
        ),
        (
            "ca_file = '{file}'",
            (
                'ca_file = "{file}": the protocol PLAINTEXT does not use it: set '
                "kafka.security.protocol to one with SSL, or remove it"
            ),
        ),
        (
            "protocol = 'SSL'\ncert_file = '{file}'",
            'cert_file = "{file}": it needs kafka.security.key_file beside it',
        ),
        (
            "protocol = 'SSL'\nkey_file = '{file}'",
            'key_file = "{file}": it needs kafka.security.cert_file beside it',
        ),
        (
            "protocol = 'SSL'\nca_file = '{file}x'",
            'ca_file = "{file}x": the file cannot be read: No such file or directory',
        ),
        ("ca_file = 1", "ca_file = 1: it must be the path of a file, in quotes"),
        (
            'mechanism = "gssapi"',
            'mechanism = "gssapi": the choices are "PLAIN", "SCRAM-SHA-256" and "SCRAM-SHA-512"',
        ),
        (
            'protocol = "tls"',
            'protocol = "tls": the choices are "PLAINTEXT", "SSL", "SASL_PLAINTEXT" and "SASL_SSL"',
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    refusal: Refusal, tmp_path: Path, lines: str, sentence: str
) -> None:
    file = tmp_path / "file.pem"
    file.write_text("x")
    said = refusal(security=lines.replace("{file}", str(file)))
    assert said == f"kafka.security.{sentence}".replace("{file}", str(file))


def test_files_that_hold_no_certificate_or_key_are_refused(
    refusal: Refusal, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "ca")
    client, other = authority.sign("client"), authority.sign("other")
    empty, locked = tmp_path / "empty.pem", authority.locked(client.key)
    empty.write_text("nothing\n")

    def said(ca: Path, certificate: Path, key: Path) -> str:
        files = f"ca_file = '{ca}'\ncert_file = '{certificate}'\nkey_file = '{key}'"
        return refusal(security=f"protocol = 'SSL'\n{files}")

    good = authority.certificate, client.certificate, client.key
    assert said(empty, *good[1:]) == (
        f'kafka.security.ca_file = "{empty}": the file holds no certificate as PEM text'
    )
    assert said(good[0], empty, good[2]) == (
        f'kafka.security.cert_file = "{empty}": the file holds no certificate as PEM text'
    )
    assert said(*good[:2], empty) == (
        f'kafka.security.key_file = "{empty}": the file holds no private key as PEM text'
    )
    assert said(*good[:2], other.key) == (
        f'kafka.security.key_file = "{other.key}": it is not the key of kafka.security.cert_file'
    )
    assert "the key is locked with a passphrase" in said(*good[:2], locked)


def test_python_trusts_the_authorities_that_librdkafka_trusts(load: Load, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    found = load(security=f"protocol = 'SSL'\nca_file = '{authority.certificate}'")
    context = tls_context(found.kafka.security)
    assert not context.verify_flags & ssl.VerifyFlags.VERIFY_X509_STRICT
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_every_client_reaches_the_brokers_the_same_way(load: Load, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    client = authority.sign("client")
    files = (
        f"ca_file = '{authority.certificate}'\ncert_file = '{client.certificate}'\n"
        f"key_file = '{client.key}'\n"
    )
    found = load(
        kafka='client_rack = "r1"',
        security=f'{SASL}password = "p"\n{files}',
        client="socket.timeout.ms = 5_000\nlinger.ms = 5\nfetch.wait.max.ms = 10\n"
        "socket.keepalive.enable = true",
    )
    common = {
        "bootstrap.servers": "localhost:9092",
        "client.id": "rocstream",
        "client.rack": "r1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "p",
        "ssl.ca.location": str(authority.certificate),
        "ssl.certificate.location": str(client.certificate),
        "ssl.key.location": str(client.key),
        "socket.timeout.ms": "5000",
        "socket.keepalive.enable": "true",
    }
    produced, consumed = {"linger.ms": "5"}, {"fetch.wait.max.ms": "10"}
    assert librdkafka(found) == {**common, **produced, **consumed}
    assert librdkafka(found, "producer") == {**common, **produced}
    assert librdkafka(found, "consumer") == {**common, **consumed}
    assert librdkafka(found, "admin") == common


@pytest.mark.parametrize("name", sorted({*ALLOWED, *ELSEWHERE, *OWNED}))
def test_librdkafka_knows_every_name_of_the_tables(name: str) -> None:
    blamed, why = complaint({name: "no such value"}) or (None, "")
    assert blamed in {None, name}
    assert "No such configuration property" not in why


def test_a_variable_gives_a_client_setting_with_underscores(load: Load) -> None:
    found = load(
        {"ROCSTREAM__KAFKA__CLIENT__LINGER_MS": "7", "ROCSTREAM__KAFKA__CLIENT__LOG_LEVEL": "3"},
        client='"batch.size" = 20000',
    )
    assert dict(found.kafka.client) == {"linger.ms": "7", "log_level": "3", "batch.size": "20000"}


def test_client_settings_must_fit_together(load: Load, refusal: Refusal) -> None:
    said = refusal(client="receive.message.max.bytes = 20_000_000")
    assert said == (
        'kafka.client = {"receive": {"message": {"max": {"bytes": 20000000}}}}: '
        "librdkafka refuses: Failed to create consumer: `receive.message.max.bytes` must be >= "
        "`fetch.max.bytes` + 512"
    )
    both = "receive.message.max.bytes = 20_000_000\nfetch.max.bytes = 10_000_000"
    assert len(load(client=both).kafka.client) == 2


def test_no_allowed_name_is_refused() -> None:
    assert {name: refusal(name) for name in ALLOWED if refusal(name)} == {}
