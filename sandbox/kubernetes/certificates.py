"""Keys of one control plane: an authority of its own, a certificate for servers and clients, new each time."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = datetime.timedelta(days=3650)
_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Certificates:
    """Files of a folder, PEM: `ca.crt`, `ca.key`, and `tls.crt`, `tls.key` under the names that a server looks for."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def accounts(self) -> Path:
        """Key that signs service accounts' tokens."""
        return self.folder / "accounts.key"


def make(folder: Path, names: tuple[str, ...]) -> Certificates:
    """Create the keys in a folder. The server's certificate is for 127.0.0.1, localhost and `names`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # RSA where the readers, Kueue and the API server's tokens, accept nothing else.
    authority, accounts = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    server = ec.generate_private_key(ec.SECP256R1())
    issuer = _name("sandbox-ca")
    root = (
        _certificate(issuer, issuer, authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        # Kueue looks for this name in the authority of its Secret.
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("kueue-ca")]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *map(x509.DNSName, ("localhost", *names))]
    leaf = (
        _certificate(_name("sandbox"), issuer, server)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    for name, key in (("ca.key", authority), ("tls.key", server), ("accounts.key", accounts)):
        (folder / name).touch(0o600)
        (folder / name).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
    for name, certificate in (("ca.crt", root), ("tls.crt", leaf)):
        (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Certificates(folder)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _SKEW,
        not_valid_after=now + _VALID,
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
