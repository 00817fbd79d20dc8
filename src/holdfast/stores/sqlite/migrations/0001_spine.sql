-- The spine: operations, records, approvals, rates, brakes, keys.
-- Shaped for PostgreSQL as well: tenant leads every key, times are seconds, nothing leans on row ids.

CREATE TABLE operation (
  tenant           TEXT NOT NULL,
  principal        TEXT NOT NULL,
  tool             TEXT NOT NULL,
  key              TEXT NOT NULL,
  call_id          TEXT NOT NULL,
  version          TEXT NOT NULL,
  contract_digest  TEXT NOT NULL,
  fingerprint      TEXT NOT NULL,
  state            TEXT NOT NULL,
  epoch            INTEGER NOT NULL,            -- counts claims; every later write is conditional on it
  nonce            TEXT NOT NULL,               -- names one attempt
  owner            TEXT NOT NULL,               -- the worker that claimed it
  key_source       TEXT NOT NULL,
  trace_id         TEXT NOT NULL,
  created_at       REAL NOT NULL,               -- wall clock, for people
  updated_at       REAL NOT NULL,
  boot_id          TEXT NOT NULL,               -- the boot in which the next two figures mean something
  deadline_boot    REAL,
  lease_boot       REAL,
  finished_at      REAL,
  finished_boot_id TEXT,
  forget_boot      REAL,                        -- when its window is over, in the boot it finished in
  window_s         REAL NOT NULL,
  approval_id      TEXT,
  payload          BLOB,                        -- sealed
  outcome          BLOB,                        -- sealed
  note             TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, principal, tool, key),
  UNIQUE (tenant, call_id)
) STRICT;

CREATE INDEX operation_open ON operation (updated_at, call_id)
  WHERE state IN ('claimed', 'dispatched', 'unknown');

CREATE INDEX operation_kept ON operation (finished_boot_id, forget_boot)
  WHERE payload IS NOT NULL AND finished_boot_id IS NOT NULL;

CREATE TABLE record (
  tenant   TEXT NOT NULL,
  writer   TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  call_id  TEXT NOT NULL,
  kind     TEXT NOT NULL,
  at       REAL NOT NULL,
  body     TEXT NOT NULL,
  prev     BLOB NOT NULL,
  hash     BLOB NOT NULL,
  PRIMARY KEY (tenant, writer, seq)
) STRICT;

CREATE TABLE approval (
  tenant           TEXT NOT NULL,
  id               TEXT NOT NULL,
  principal        TEXT NOT NULL,
  tool             TEXT NOT NULL,
  key              TEXT NOT NULL,
  round            INTEGER NOT NULL,            -- how often this operation was asked about
  call_id          TEXT NOT NULL,
  fingerprint      TEXT NOT NULL,
  contract_digest  TEXT NOT NULL,
  need             TEXT NOT NULL,               -- JSON: role -> count
  answer           TEXT NOT NULL,
  packet           BLOB NOT NULL,               -- sealed
  created_at       REAL NOT NULL,
  expires_at       REAL NOT NULL,
  used_nonce       TEXT,                        -- the attempt that consumed it
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, principal, tool, key, round)
) STRICT;

CREATE INDEX approval_pending ON approval (tenant, principal, expires_at) WHERE answer = 'PENDING';

CREATE TABLE vote (
  tenant       TEXT NOT NULL,
  approval_id  TEXT NOT NULL,
  person       TEXT NOT NULL,
  role         TEXT NOT NULL,
  approve      INTEGER NOT NULL,
  note         TEXT NOT NULL,
  at           REAL NOT NULL,
  PRIMARY KEY (tenant, approval_id, person)
) STRICT;

CREATE TABLE rate (
  tenant  TEXT NOT NULL,
  bucket  TEXT NOT NULL,
  tat     REAL NOT NULL,
  PRIMARY KEY (tenant, bucket)
) STRICT;

CREATE TABLE halt (
  tenant     TEXT NOT NULL,                     -- '*': the whole gateway
  target     TEXT NOT NULL,
  halted_by  TEXT NOT NULL,
  note       TEXT NOT NULL,
  at         REAL NOT NULL,
  PRIMARY KEY (tenant, target)
) STRICT;

CREATE TABLE cancel (
  tenant        TEXT NOT NULL,
  call_id       TEXT NOT NULL,
  cancelled_by  TEXT NOT NULL,
  at            REAL NOT NULL,
  PRIMARY KEY (tenant, call_id)
) STRICT;

CREATE TABLE tenant_key (
  tenant   TEXT NOT NULL,
  wrapped  BLOB NOT NULL,                       -- deleting the row erases everything of the tenant
  PRIMARY KEY (tenant)
) STRICT;
