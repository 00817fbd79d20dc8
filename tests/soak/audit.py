"""Is the log of a storm one tree, with everything in it and nothing out of its place?"""

import asyncio
from functools import cache
from itertools import pairwise
from pathlib import Path

from holdfast import Gateway
from holdfast import config as configuration
from holdfast.config import Config
from holdfast.gateway import auditing, logfile
from holdfast.records import checkpoint
from holdfast.records.checkpoint import CheckpointFile
from holdfast.records.merkle import consistency_proof, inclusion_proof, is_consistent, is_included, leaf_hash
from holdfast.records.report import Report
from holdfast.stores.log import opened

SAMPLE = 100
"""Leaves whose inclusion is proved; all of them are looked at."""


async def check_log(file: Path) -> set[str]:
    """As the dead left it, and after somebody tidied up; returns the workers that wrote it."""
    config = configuration.load(file)
    left = await asyncio.to_thread(_verified, config)
    assert left.ok, left.lines()
    async with Gateway.open(config):
        pass  # takes what the dead left into the tree, and signs it
    whole = await asyncio.to_thread(_verified, config)
    assert (whole.ok, whole.waiting, whole.tail) == (True, 0, 0), whole.lines()
    assert whole.records == whole.leaves
    print("\n".join(whole.lines()))
    return await asyncio.to_thread(_prove, config, bytes.fromhex(whole.root))


def _verified(config: Config) -> Report:
    outside = auditing.checkpoint_path(config)
    return logfile.verify(logfile.place(config), outside, logfile.public_key(config))


def _prove(config: Config, root: bytes) -> set[str]:
    """Leaves are in the tree, and every checkpoint grew out of the one before it: by proofs alone."""
    notes = CheckpointFile(auditing.checkpoint_path(config)).read()
    signed = [checkpoint.opened(note, logfile.public_key(config)) for note in notes]
    with opened(logfile.place(config)) as log:
        size, node = log.size(), cache(log.node)
        leaves = [(leaf.writer, leaf.hash) for leaf in log.leaves()]
        for place in range(0, size, max(size // SAMPLE, 1)):
            proof = inclusion_proof(node, place, size)
            assert is_included(leaf_hash(leaves[place][1]), place, size, proof, root), place
        for before, after in pairwise(signed):
            proof = consistency_proof(node, before.size, after.size)
            assert is_consistent(before.size, before.root, after.size, after.root, proof), before
        assert (signed[-1].size, signed[-1].root) == (size, root)
    return {writer.partition(".")[0] for writer, _ in leaves}
