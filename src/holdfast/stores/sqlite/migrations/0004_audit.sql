-- The audit: one Merkle tree over the records of all writers, filled in batches by whoever holds the lock.
-- What belongs to the whole log has tenant '*'.

CREATE INDEX record_chain ON record (writer, seq);

CREATE TABLE chain_head (
  tenant  TEXT NOT NULL,                        -- '*': a writer serves many tenants
  writer  TEXT NOT NULL,
  seq     INTEGER NOT NULL,                     -- the last of its records that is in the tree
  hash    BLOB NOT NULL,
  open    INTEGER NOT NULL,                     -- 0: the writer is dead and all of it is in the tree
  fault   TEXT NOT NULL DEFAULT '',             -- why nothing more of it is taken
  PRIMARY KEY (tenant, writer)
) STRICT;

CREATE INDEX chain_head_open ON chain_head (writer) WHERE open = 1 AND fault = '';

INSERT INTO chain_head (tenant, writer, seq, hash, open)
SELECT DISTINCT '*', writer, 0, zeroblob(32), 1 FROM record;

CREATE TABLE tree_leaf (
  tenant   TEXT NOT NULL,                       -- the record's
  leaf     INTEGER NOT NULL,                    -- its place in the tree, from 0
  writer   TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  call_id  TEXT NOT NULL,
  at       REAL NOT NULL,
  hash     BLOB NOT NULL,                       -- the record's hash; it stays when the record is pruned
  PRIMARY KEY (tenant, leaf)
) STRICT;

CREATE UNIQUE INDEX tree_leaf_place ON tree_leaf (leaf);
CREATE UNIQUE INDEX tree_leaf_record ON tree_leaf (writer, seq);
CREATE INDEX tree_leaf_call ON tree_leaf (tenant, call_id, leaf);
CREATE INDEX tree_leaf_time ON tree_leaf (tenant, at, leaf);

CREATE TABLE tree_node (
  tenant  TEXT NOT NULL,
  level   INTEGER NOT NULL,                     -- from 1: the leaves are hashed from tree_leaf
  place   INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  PRIMARY KEY (tenant, level, place)
) STRICT;

CREATE TABLE tree_checkpoint (
  tenant  TEXT NOT NULL,
  size    INTEGER NOT NULL,
  note    TEXT NOT NULL,                        -- a copy: what counts is the file outside
  PRIMARY KEY (tenant, size)
) STRICT;

CREATE TABLE tree_pruned (
  tenant  TEXT NOT NULL,
  leaf    INTEGER NOT NULL,                     -- where the next pruning starts; that it was allowed is a record
  PRIMARY KEY (tenant)
) STRICT;
