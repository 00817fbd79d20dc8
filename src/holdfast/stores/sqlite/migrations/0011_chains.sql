-- Runs of chains: what each of them wanted, how far it has come, and who drives it.

CREATE TABLE chain_run (
  tenant        TEXT NOT NULL,
  id            TEXT NOT NULL,
  chain         TEXT NOT NULL,
  version       TEXT NOT NULL,
  principal     TEXT NOT NULL,
  key           TEXT NOT NULL,                  -- whoever starts it twice with one key starts it once
  fingerprint   TEXT NOT NULL,                  -- of declaration and input: the same key for something else is refused
  call_id       TEXT NOT NULL,                  -- the call it is; '' where it was not started by one
  state         TEXT NOT NULL,
  waits_for     TEXT NOT NULL DEFAULT '',
  waits_on      TEXT NOT NULL DEFAULT '',
  why           TEXT NOT NULL DEFAULT '',
  body          BLOB NOT NULL,                  -- sealed: the declaration, the input, who wanted it
  output        BLOB,                           -- sealed
  round         INTEGER NOT NULL DEFAULT 0,     -- how often it was taken up
  created_at    REAL NOT NULL,
  updated_at    REAL NOT NULL,
  spent_s       REAL NOT NULL DEFAULT 0,
  cancelled_by  TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, principal, chain, key)
) STRICT;

CREATE INDEX chain_run_open ON chain_run (updated_at, id)
  WHERE state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED');
CREATE INDEX chain_run_call ON chain_run (tenant, call_id) WHERE call_id <> '';
CREATE INDEX chain_run_waits ON chain_run (tenant, waits_on) WHERE waits_on <> '';
CREATE INDEX chain_run_time ON chain_run (tenant, created_at);

CREATE TABLE chain_line (
  tenant   TEXT NOT NULL,
  run      TEXT NOT NULL,
  name     TEXT NOT NULL,
  number   INTEGER NOT NULL,                    -- its place in the journal, from 0
  state    TEXT NOT NULL,
  tool     TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  code     TEXT NOT NULL,
  message  TEXT NOT NULL,
  writes   INTEGER NOT NULL,
  body     BLOB,                                -- sealed: arguments and result; erased once the run is over
  at       REAL NOT NULL,
  PRIMARY KEY (tenant, run, name),
  UNIQUE (tenant, run, number)
) STRICT;

-- Who drives runs under which name: what a dead process had taken up is found by it.
CREATE TABLE chain_slot (
  tenant      TEXT NOT NULL,                    -- '*'
  slot        TEXT NOT NULL,
  owner       TEXT NOT NULL,                    -- itself; or whoever takes over what it left
  lease_until REAL NOT NULL,
  PRIMARY KEY (tenant, slot)
) STRICT;

-- What is known of the undoing of a step: shown in a twin, refuted there, or accepted by a person.
CREATE TABLE chain_evidence (
  tenant  TEXT NOT NULL,
  digest  TEXT NOT NULL,                        -- of the step and of the contracts of doing and undoing
  how     TEXT NOT NULL,
  person  TEXT NOT NULL,
  body    BLOB NOT NULL,                        -- sealed: the chain, the step, the note
  at      REAL NOT NULL,
  PRIMARY KEY (tenant, digest)
) STRICT;
