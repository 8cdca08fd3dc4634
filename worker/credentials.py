"""How clients other than librdkafka's connect securely; for those, see `config.kafka`."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import faust

if TYPE_CHECKING:
    from faust.types.auth import CredentialsT

    from config import SecuritySettings


def tls_context(security: SecuritySettings) -> ssl.SSLContext:
    """Return the TLS context of a client: it trusts, and is trusted, as librdkafka is.

    Raises
    ------
    OSError, ssl.SSLError
        When a certificate or key cannot be read; the settings were checked for it.
    """
    context = ssl.create_default_context(cafile=security.ca_file)
    # From Python 3.13 on it is set, and refuses authorities that librdkafka takes: half of the
    # worker could not connect.
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    if security.cert_file is not None:
        context.load_cert_chain(security.cert_file, security.key_file)
    return context


def faust_credentials(security: SecuritySettings) -> CredentialsT | None:
    """Return what Faust's consumer connects with; None for a plain connection."""
    context = tls_context(security) if security.protocol.endswith("SSL") else None
    if security.password is not None:
        return faust.SASLCredentials(
            username=security.username,
            password=security.password.get_secret_value(),
            mechanism=security.mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)
