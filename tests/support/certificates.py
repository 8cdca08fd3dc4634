"""Certificates for the tests, made with `openssl`: an authority, and what it signs."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_EC: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_CONFIG: Final = """\
[ca]
default_ca = it
[it]
database = {folder}/index.txt
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""


class Pair(NamedTuple):
    """A certificate and its key, PEM files; `both` has the two in one, as a broker reads them."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates that are trusted by whoever trusts `certificate`."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "ca.pem"
        self._folder = folder
        self._key = folder / "ca.key"
        self._config = folder / "ca.cnf"
        folder.mkdir()
        (folder / "index.txt").touch()
        self._config.write_text(_CONFIG.format(folder=folder))
        _openssl(
            *("req", "-x509", *_EC, "-days", "2", "-subj", "/CN=an authority of the tests"),
            # As Python asks of an authority from 3.13 on.
            *("-addext", "keyUsage=critical,keyCertSign"),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def sign(self, name: str, *, host: str = "IP:127.0.0.1", expired: bool = False) -> Pair:
        """Return a certificate of this common name for a host, ``IP:...`` or ``DNS:...``."""
        now = datetime.now(UTC)
        begin, end = (-2, -1) if expired else (-1, 2)
        pair = Pair(*(self._folder / f"{name}.{part}" for part in ("pem", "key", "both")))
        request = self._folder / f"{name}.csr"
        _openssl(
            *("req", "-new", *_EC, "-subj", f"/CN={name}", "-keyout", pair.key, "-out", request),
            *("-addext", f"subjectAltName={host}"),
        )
        _openssl(
            *("ca", "-batch", "-notext", "-config", self._config),
            *("-cert", self.certificate, "-keyfile", self._key, "-in", request),
            *("-out", pair.certificate),
            *("-startdate", f"{now + timedelta(days=begin):%Y%m%d%H%M%SZ}"),
            *("-enddate", f"{now + timedelta(days=end):%Y%m%d%H%M%SZ}"),
        )
        pair.both.write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
        return pair

    def locked(self, key: Path) -> Path:
        """Return a key with a passphrase."""
        found = key.with_suffix(".locked")
        _openssl("pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", found)
        return found


def _openssl(*arguments: str | Path) -> None:
    program = shutil.which("openssl")
    assert program is not None, "the tests need openssl (on Debian: apt-get install openssl)"
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
