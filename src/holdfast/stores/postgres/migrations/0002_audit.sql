-- The audit: what happened, chained by whoever wrote it, and one Merkle tree over the records of all writers.

CREATE TABLE record (
  tenant   text COLLATE "C" NOT NULL,
  writer   text COLLATE "C" NOT NULL,
  seq      bigint NOT NULL,
  call_id  text COLLATE "C" NOT NULL,
  kind     text COLLATE "C" NOT NULL,
  at       double precision NOT NULL,
  body     text NOT NULL,
  prev     bytea NOT NULL,
  hash     bytea NOT NULL,
  PRIMARY KEY (tenant, writer, seq),
  UNIQUE (writer, seq)                          -- a chain has one record at each place, whoever asks
);

CREATE TABLE chain_head (
  tenant  text COLLATE "C" NOT NULL,
  writer  text COLLATE "C" NOT NULL,
  seq     bigint NOT NULL,
  hash    bytea NOT NULL,
  open    bigint NOT NULL,
  fault   text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, writer)
);

CREATE INDEX chain_head_open ON chain_head (writer) WHERE open = 1 AND fault = '';

CREATE TABLE tree_leaf (
  tenant   text COLLATE "C" NOT NULL,
  leaf     bigint NOT NULL,
  writer   text COLLATE "C" NOT NULL,
  seq      bigint NOT NULL,
  call_id  text COLLATE "C" NOT NULL,
  at       double precision NOT NULL,
  hash     bytea NOT NULL,
  PRIMARY KEY (tenant, leaf)
);

CREATE UNIQUE INDEX tree_leaf_place ON tree_leaf (leaf);
CREATE UNIQUE INDEX tree_leaf_record ON tree_leaf (writer, seq);
CREATE INDEX tree_leaf_call ON tree_leaf (tenant, call_id, leaf);
CREATE INDEX tree_leaf_time ON tree_leaf (tenant, at, leaf);

CREATE TABLE tree_node (
  tenant  text COLLATE "C" NOT NULL,
  level   bigint NOT NULL,
  place   bigint NOT NULL,
  hash    bytea NOT NULL,
  PRIMARY KEY (tenant, level, place)
);

CREATE TABLE tree_checkpoint (
  tenant  text COLLATE "C" NOT NULL,
  size    bigint NOT NULL,
  note    text NOT NULL,
  PRIMARY KEY (tenant, size)
);

CREATE TABLE tree_pruned (
  tenant  text COLLATE "C" NOT NULL,
  leaf    bigint NOT NULL,
  PRIMARY KEY (tenant)
);
