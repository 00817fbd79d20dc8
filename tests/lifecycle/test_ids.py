"""Are names drawn from the system's randomness never drawn twice?"""

import os

from holdfast.system import RandomIds


def test_a_forked_process_does_not_repeat_its_parent() -> None:
    ids = RandomIds()
    ids.nonce()
    out, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, ids.nonce().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(out, 100).decode()
    os.close(out)
    os.close(told)
    ours = [ids.nonce() for _ in range(1000)]
    assert len(theirs) == len(ours[0])
    assert theirs not in ours


def test_names_do_not_repeat_over_many_blocks() -> None:
    ids = RandomIds()
    drawn = [ids.nonce() for _ in range(5000)] + [ids.trace() for _ in range(5000)]
    assert len(set(drawn)) == 10_000
    assert {len(name) for name in drawn} == {24, 32}
