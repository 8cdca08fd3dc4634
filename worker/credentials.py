"""Faust's credentials from the settings; librdkafka's are in `config.kafka`."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import faust

if TYPE_CHECKING:
    from faust.types.auth import CredentialsT

    from config import SecuritySettings


def faust_credentials(security: SecuritySettings) -> CredentialsT | None:
    """Return what Faust's consumer connects with; None for a plain connection.

    Raises
    ------
    OSError, ssl.SSLError
        When a certificate or key cannot be read.
    """
    context = None
    if security.protocol.endswith("SSL"):
        context = ssl.create_default_context(cafile=security.ca_file)
        if security.cert_file is not None:
            context.load_cert_chain(security.cert_file, security.key_file)
    if security.password is not None:
        return faust.SASLCredentials(
            username=security.username,
            password=security.password.get_secret_value(),
            mechanism=security.mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)
