"""Can only the right process read, and can nobody guess?"""

import asyncio
import hmac
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.model.errors import StoreError
from holdfast.stores.keyring import DictTenantKeys, Keyring, Nonces, root_secret
from holdfast.testing import settle_loop
from tests.requirements import requirement

READER = """
import sys
from pathlib import Path
from holdfast.stores.keyring import root_secret
print("ready", flush=True)
sys.stdin.readline()
print(root_secret(Path(sys.argv[1])).hex())
"""


@requirement("DEC-4")
def test_the_key_file_is_the_owners_alone_and_stays_the_same(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db.keys"
    root = root_secret(path)
    assert len(root) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert root_secret(path) == root
    assert [entry.name for entry in tmp_path.iterdir()] == ["holdfast.db.keys"]


@requirement("DEC-4")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_key_file_others_can_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "holdfast.db.keys"
    root_secret(path)
    path.chmod(mode)
    with pytest.raises(StoreError, match=rf"mode {mode:o}\); run: chmod 600"):
        root_secret(path)


@requirement("DEC-4")
@pytest.mark.parametrize("text", ["", "{}", '{"root": "abcd"}', '{"root": 7}', "[]"])
def test_a_damaged_key_file_is_never_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "holdfast.db.keys"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(StoreError, match="is damaged; put it back from a backup"):
        root_secret(path)
    assert path.read_text() == text


@requirement("DEC-4", "PPL-6")
def test_processes_that_start_at_once_agree_on_one_secret(tmp_path: Path) -> None:
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(tmp_path / "keys")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for starter in starters:
        assert starter.stdout is not None
        starter.stdout.readline()
    secrets = {starter.communicate("go\n")[0] for starter in starters}
    assert len(secrets) == 1


@requirement("CON-6", "AUT-6")
def test_a_payload_opens_only_for_its_tenant_and_unchanged() -> None:
    keyring = Keyring()
    sealed = keyring.seal("acme", b"secret")
    assert keyring.unseal("acme", sealed) == b"secret"
    assert keyring.seal("acme", b"secret") != sealed
    for tenant, blob in (
        ("other", sealed),
        ("acme", sealed[:-1] + bytes([sealed[-1] ^ 1])),
        ("acme", b""),
        ("acme", b"x" * 20),
    ):
        with pytest.raises(StoreError, match="cannot be read"):
            keyring.unseal(tenant, blob)


@requirement("CON-6")
def test_a_tenants_key_gone_means_its_payloads_gone_and_only_its() -> None:
    root, kept = os.urandom(32), DictTenantKeys()
    keyring = Keyring(root, kept)
    ours, theirs = keyring.seal("acme", b"ours"), keyring.seal("other", b"theirs")
    assert Keyring(root, kept).unseal("acme", ours) == b"ours"
    del kept["acme"]
    again = Keyring(root, kept)
    with pytest.raises(StoreError):
        again.unseal("acme", ours)
    assert "acme" not in kept, "whoever looks at what is gone makes no key for it"
    assert again.unseal("other", theirs) == b"theirs"


@requirement("CON-6")
async def test_what_was_known_of_an_erased_key_goes_when_the_next_one_is_learnt() -> None:
    root, kept = os.urandom(32), DictTenantKeys()
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
    answers = iter((first, second))

    async def make(tenant: str, wrapped: bytes) -> bytes:
        answer: bytes = await next(answers)
        return answer

    keyring = Keyring(root, kept, make)
    both = asyncio.gather(keyring.ready("acme"), keyring.ready("acme"))
    await settle_loop()
    first.set_result(_kept_key(root, DictTenantKeys()))
    await settle_loop()
    keyring.commitment("acme", b"x")
    second.set_result(_kept_key(root, kept))
    await both
    assert keyring.commitment("acme", b"x") == Keyring(root, kept).commitment("acme", b"x")


def _kept_key(root: bytes, kept: DictTenantKeys) -> bytes:
    """A tenant's key, wrapped, as it is made and kept there."""
    Keyring(root, kept).seal("acme", b"")
    return kept["acme"]


@requirement("DEC-4")
def test_another_root_does_not_open_the_tenant_keys() -> None:
    kept = DictTenantKeys()
    Keyring(os.urandom(32), kept).seal("acme", b"ours")
    with pytest.raises(StoreError, match="does not belong"):
        Keyring(os.urandom(32), kept).seal("acme", b"theirs")


@requirement("IDM-2", "CON-6")
def test_derived_keys_and_commitments_differ_by_tenant_purpose_part_and_secret() -> None:
    keyring, other = Keyring(), Keyring()
    parts = ["alice/bot", "task", "step", "bank.pay"]
    names = {
        keyring.derive_key("acme", parts),
        keyring.derive_key("other", parts),
        keyring.derive_key("acme", ["alice/bottask", "", "step", "bank.pay"]),
        keyring.derive_key("acme", parts[:3]),
        other.derive_key("acme", parts),
        keyring.commitment("acme", b"data"),
        keyring.commitment("other", b"data"),
        other.commitment("acme", b"data"),
    }
    assert len(names) == 8
    assert keyring.derive_key("acme", parts) == keyring.derive_key("acme", list(parts))
    assert keyring.commitment("acme", b"data") == keyring.commitment("acme", b"data")


@requirement("CON-6")
def test_no_nonce_comes_twice_not_even_in_a_forked_child() -> None:
    nonces = Nonces()
    ours = {nonces.next() for _ in range(1000)}
    assert len(ours) == 1000
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(send, b"".join(nonces.next() for _ in range(10)))
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(receive, 120)
    os.close(receive)
    os.close(send)
    assert {theirs[at : at + 12] for at in range(0, 120, 12)}.isdisjoint({nonces.next() for _ in range(300)})


@requirement("CON-6")
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 5000])
def test_commitments_are_hmacs_anybody_can_make_who_has_the_key(size: int) -> None:
    keyring, data = Keyring(bytes(32)), b"x" * size
    key = keyring._derive("acme", "sign:note")
    assert keyring.sign("acme", "note", data) == hmac.digest(key, data, "sha256").hex()
