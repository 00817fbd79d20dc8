"""Whom does a connection trust, and is anything said to anybody else?"""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.model.errors import NoEffect
from holdfast.upstreams.http import pool as pools
from holdfast.upstreams.http.address import Address
from holdfast.upstreams.http.errors import Broken, Unreachable
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.requirements import requirement
from tests.upstreams.http.raw import JSON_HEAD, Raw, Serve, Visitor, pooled, read
from tests.upstreams.mcp.callers import AT_ONCE, SOON_S, attempt
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit

HERE = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
ELSEWHERE = x509.DNSName("elsewhere.example")


_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Signs certificates for servers of these tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority")])
        own = self._certificate(self._name, self._key.public_key(), ca=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def _certificate(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey, *names: x509.GeneralName, ca: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        theirs = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=name,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - day,
            not_valid_after=now + day,
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        builder = builder.add_extension(own, critical=False).add_extension(theirs, critical=False)
        if ca:  # without it OpenSSL, told to be strict as by newer Pythons, trusts nobody it signed
            builder = builder.add_extension(_SIGNS, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def server(self, place: x509.GeneralName) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server")])
        both = self._folder / "server.pem"
        both.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + self._certificate(name, key.public_key(), place).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        return context

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.file)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def echo(visitor: Visitor) -> None:
    while body := await visitor.asked():
        await visitor.answer(body)


@pytest.mark.parametrize("size", [10, 100_000])
async def test_an_answer_comes_through_tls_and_the_connection_is_kept(
    authority: Authority, size: int
) -> None:
    raw = Raw(echo)
    async with raw.open(ssl=authority.server(HERE)) as there, pooled(there, trust=authority.trust) as client:
        for _ in range(5):
            assert await read(await client.post(b"x" * size)) == b"x" * size
        assert len(raw.visitors) == 1


async def heard(serve: Serve, context: ssl.SSLContext, trust: ssl.SSLContext) -> str:
    """Why nobody could be reached; fails when the server got to hear anything."""
    raw = Raw(serve)
    async with raw.open(ssl=context) as there, pooled(there, trust=trust) as client:
        with pytest.raises(Unreachable) as told:
            await client.post(b"a secret")
        assert not raw.visitors
    return str(told.value)


@requirement("IDM-5")
async def test_a_server_nobody_vouches_for_is_told_nothing(authority: Authority) -> None:
    said = await heard(echo, authority.server(HERE), ssl.create_default_context())
    assert "certificate is not trusted" in said


@requirement("IDM-5")
async def test_a_server_that_is_somebody_else_is_told_nothing(authority: Authority) -> None:
    said = await heard(echo, authority.server(ELSEWHERE), authority.trust)
    assert "certificate is not trusted" in said


@requirement("IDM-5")
async def test_a_server_that_does_not_speak_tls_is_told_nothing(authority: Authority) -> None:
    got: list[bytes] = []

    async def serve(visitor: Visitor) -> None:
        got.append(await visitor.reader.read(10_000))
        await visitor.say(b"HTTP/1.1 400 Speak plainly\r\n\r\n")

    async with Raw(serve).open() as plain:
        there = Address(
            tls=True, host=plain.host, port=plain.port, host_field="x", path="/", credentials=None
        )
        async with pooled(there, trust=authority.trust) as client:
            with pytest.raises(Unreachable):
                await client.post(b"a secret")
    assert b"a secret" not in b"".join(got)


@pytest.mark.parametrize("said", [b"", JSON_HEAD + b"content-length: 9\r\n\r\n{"], ids=["no head", "no end"])
@requirement("IDM-5")
async def test_a_connection_that_ends_under_tls_breaks_the_exchange(
    authority: Authority, said: bytes
) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(said)

    raw = Raw(serve)
    async with raw.open(ssl=authority.server(HERE)) as there, pooled(there, trust=authority.trust) as client:
        with pytest.raises(Broken):
            await read(await client.post())


@asynccontextmanager
async def over_tls(context: ssl.SSLContext) -> AsyncIterator[HttpTarget]:
    async def act(visit: Visit) -> None:
        visit.answer(**visit.result()["result"])

    rogue = RogueHttp(act)
    server = await asyncio.start_server(rogue._connected, "127.0.0.1", 0, ssl=context)
    try:
        yield HttpTarget(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    finally:
        server.close()
        for visit in rogue.visits:
            visit.writer.close()
        await server.wait_closed()


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "untrusted"])
@requirement("IDM-5")
async def test_an_upstream_trusts_whom_the_machine_trusts(
    authority: Authority, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    pools.trusted.cache_clear()
    try:
        async with over_tls(authority.server(HERE)) as target:
            shop = McpUpstream("shop", target, backoff=AT_ONCE)
            shop.start()
            try:
                assert await shop.ready(SOON_S) is trusted
                if trusted:
                    assert (await shop.invoke(attempt("tool"))).data == {"text": "done"}
                else:
                    with pytest.raises(NoEffect, match="certificate is not trusted"):
                        await shop.invoke(attempt("tool"))
            finally:
                await shop.close()
    finally:
        pools.trusted.cache_clear()
