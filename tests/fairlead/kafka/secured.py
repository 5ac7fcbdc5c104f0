"""A broker that requires TLS and SCRAM, and denies everything that is not allowed explicitly.

Belongs here: the broker, its certificate, users and their documented rights. Belongs elsewhere:
tests of what these rights allow (`test_rights`).
"""

import ipaddress
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.sandbox.kafka import HOST, free_ports
from fairlead.settings import KafkaSettings
from tests.cluster import QUIET, ClusterNode, new_cluster_id
from tests.waiting import PATIENCE_S

TRUST: Final = Path(__file__).parents[3] / "docs" / "trust.md"
PASSWORD: Final = "correct horse battery staple"  # noqa: S105 - of a broker that lives for a test
#: User that logs in by PLAIN, which sends the password in clear text.
PLAIN_USER: Final = "plain"
_KINDS: Final = {
    "cluster": ResourceType.BROKER,
    "topic": ResourceType.TOPIC,
    "topics": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "groups": ResourceType.GROUP,
    "transactional ids": ResourceType.TRANSACTIONAL_ID,  # type: ignore[attr-defined] # not in stubs
}


@dataclass(frozen=True)
class Right:
    """One row of the table of rights in docs/trust.md, for one kind of user.

    Parameters
    ----------
    kind
        Kind of resource, for example "topic".
    name
        Name or prefix of the resource; None: callers of `allow` name the groups or topics.
    operations
        Allowed operations, for example "READ".
    """

    kind: str
    name: str | None
    operations: tuple[str, ...]


def rights(column: str) -> list[Right]:
    """Return the documented rights of the planner ("planner") or of a client library."""
    _, _, section = TRUST.read_text().partition("## Rights on Kafka\n")
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \|$", section.partition("\n## ")[0], re.MULTILINE
    )
    found = []
    for where, planner, consumers in rows[2:]:
        only, _, whose = consumers.removeprefix("only ").rpartition(": ")
        text = planner if column == "planner" else whose if only in {"", column} else ""
        named = re.fullmatch(r"(.+?) `(.+?)\*?`(?: \(prefixed\))?", where)
        kind, name = named.groups() if named else (where.removesuffix(" of the groups"), None)
        operations = tuple(re.findall(r"\b[A-Z][A-Z_]+\b", text))
        if operations:
            found.append(Right(kind, name, operations))
    return found


@dataclass(frozen=True)
class SecuredBroker:
    """The running broker.

    Parameters
    ----------
    open_servers
        Address of the listener that allows everything without a password.
    servers
        Address of the listener with TLS and SCRAM.
    certificate
        File with the certificate of the authority that signed the broker's certificate.
    """

    open_servers: str
    servers: str
    certificate: Path

    @cached_property
    def admin(self) -> AdminClient:
        """Return an admin client that has all rights."""
        return AdminClient({"bootstrap.servers": self.open_servers, **QUIET})

    def add_user(self, user: str) -> None:
        """Create a user without rights."""
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(user, scram, PASSWORD.encode())
        for done in self.admin.alter_user_scram_credentials([change]).values():
            done.result(PATIENCE_S)

    def allow(self, user: str, right: Right, *names: str) -> None:
        """Grant a user a right. If the right has no name, `names` are the resources."""
        for done in self.admin.create_acls(self._bindings(user, right, names)).values():
            done.result(PATIENCE_S)

    def deny(self, user: str, right: Right, *names: str) -> None:
        """Revoke a right granted by `allow`."""
        bindings = self._bindings(user, right, names, AclBindingFilter)
        for done in self.admin.delete_acls(bindings).values():
            assert done.result(PATIENCE_S), f"{user} had no {right}"

    def _bindings(
        self, user: str, right: Right, names: tuple[str, ...], kind: type[Any] = AclBinding
    ) -> list[Any]:
        return [
            kind(
                _KINDS[right.kind],
                name,
                ResourcePatternType.PREFIXED
                if right.kind == "transactional ids"
                else ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for name in ((right.name,) if right.name else names)
            for operation in right.operations
        ]

    def librdkafka(self, user: str) -> dict[str, Any]:
        """Return a user's settings for librdkafka."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificate),
        }

    def kafka_python(self, user: str) -> dict[str, Any]:
        """Return a user's settings for kafka-python."""
        return self._plain(user) | {"ssl_cafile": str(self.certificate)}

    def aiokafka(self, user: str) -> dict[str, Any]:
        """Return a user's settings for aiokafka."""
        context = ssl.create_default_context(cafile=self.certificate)
        return self._plain(user) | {"ssl_context": context}

    def settings(self, user: str) -> KafkaSettings:
        """Return the planner's settings with this user's login."""
        return KafkaSettings(properties=self.librdkafka(user), request_timeout_s=PATIENCE_S)

    def _plain(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.servers,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
            "sasl_plain_password": PASSWORD,
        }


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    """Start a broker, and end it afterwards."""
    port, controller, guarded = free_ports(3)
    certificate, keys = certify(folder)
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:{port},SASL_SSL://{HOST}:{guarded},"
        f"CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},SASL_SSL://{HOST}:{guarded}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,"
        "CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
        f'PlainLoginModule required user_{PLAIN_USER}="{PASSWORD}";',
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common."
        "security.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "true",  # Kafka's default: metadata requests create topics
        "controller.quorum.voters": f"1@{HOST}:{controller}",
    }
    broker = ClusterNode(folder / "broker", (port, controller), new_cluster_id(), settings=settings)
    try:
        broker.start()
        yield SecuredBroker(f"{HOST}:{port}", f"{HOST}:{guarded}", certificate)
    finally:
        broker.kill()


def certify(folder: Path, named: str = "authority") -> tuple[Path, Path]:
    """Write PEM files: an authority's certificate, and the broker's key and certificate."""
    ours, its = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)

    def certificate(name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, named)]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=1))
        )

    authority = (
        certificate(named, ours.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(ours, hashes.SHA256())
    )
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    broker = (
        certificate("broker", its.public_key())
        .add_extension(addresses, critical=False)
        .sign(ours, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key = its.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    trusted, keys = folder / "authority.pem", folder / "broker.pem"
    trusted.write_bytes(authority.public_bytes(pem))
    keys.write_bytes(key + broker.public_bytes(pem) + authority.public_bytes(pem))
    return trusted, keys
