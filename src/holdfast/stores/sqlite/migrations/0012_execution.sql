-- What is under way beside the ledger: which tool of a capability has a key, what may not be changed at once,
-- jobs that go on at their upstream, and sessions that are open there.

-- The tool that answers for a key of a capability: no other one of it may be claimed under that key.
CREATE TABLE capability_level (
  tenant      TEXT NOT NULL,
  principal   TEXT NOT NULL,
  capability  TEXT NOT NULL,
  key         TEXT NOT NULL,
  tool        TEXT NOT NULL,
  updated_at  REAL NOT NULL,
  PRIMARY KEY (tenant, principal, capability, key)
) STRICT;

-- What a write under way changes: whoever wants to change the same waits for it.
CREATE TABLE effect_lock (
  tenant    TEXT NOT NULL,
  resource  TEXT NOT NULL,                      -- a commitment: ids are nobody's business
  kind      TEXT NOT NULL,
  whole     INTEGER NOT NULL,                   -- all of its kind
  call_id   TEXT NOT NULL,
  nonce     TEXT NOT NULL,                      -- of the attempt
  at        REAL NOT NULL,
  PRIMARY KEY (tenant, resource)
) STRICT;
CREATE INDEX effect_lock_kind ON effect_lock (tenant, kind);
CREATE INDEX effect_lock_call ON effect_lock (tenant, call_id);

-- What was submitted and goes on without a call.
CREATE TABLE job (
  tenant      TEXT NOT NULL,
  call_id     TEXT NOT NULL,
  state       TEXT NOT NULL,                    -- RUNNING, CANCELLING, ENDED
  body        BLOB NOT NULL,                    -- sealed: what the upstream calls it
  token       TEXT NOT NULL,                    -- a digest: whoever knows the address may say that there is news
  progress    REAL,
  ends_at     REAL,                             -- when it is expected to end
  polls       INTEGER NOT NULL DEFAULT 0,
  next_at     REAL NOT NULL,
  give_up_at  REAL NOT NULL,
  taken_by    TEXT NOT NULL DEFAULT '',
  taken_until REAL NOT NULL DEFAULT 0,
  why         TEXT NOT NULL DEFAULT '',
  created_at  REAL NOT NULL,
  updated_at  REAL NOT NULL,
  PRIMARY KEY (tenant, call_id)
) STRICT;
CREATE INDEX job_due ON job (next_at) WHERE state <> 'ENDED';
CREATE INDEX job_token ON job (token);

-- Sessions that an upstream keeps open, and what was done in them.
CREATE TABLE upstream_session (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  principal   TEXT NOT NULL,
  namespace   TEXT NOT NULL,
  name        TEXT NOT NULL,
  state       TEXT NOT NULL,                    -- OPEN, COMMITTING, COMMITTED, ROLLING_BACK, ROLLED_BACK, UNKNOWN, UNDONE
  call_id     TEXT NOT NULL,                    -- the call that began it
  worker      TEXT NOT NULL,                    -- whose process it ends with; '' where with none
  body        BLOB NOT NULL,                    -- sealed: what the upstream calls it, who began it
  at_work     TEXT NOT NULL DEFAULT '',         -- the last call that wrote in it, committed it or rolled it back
  why         TEXT NOT NULL DEFAULT '',
  idle_s      REAL NOT NULL,
  created_at  REAL NOT NULL,
  touched_at  REAL NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX upstream_session_open ON upstream_session (touched_at)
  WHERE state IN ('OPEN', 'COMMITTING', 'ROLLING_BACK', 'UNKNOWN');
CREATE INDEX upstream_session_newest ON upstream_session (tenant, created_at);
CREATE UNIQUE INDEX upstream_session_call ON upstream_session (tenant, call_id);

CREATE TABLE upstream_session_line (
  tenant   TEXT NOT NULL,
  session  TEXT NOT NULL,
  number   INTEGER NOT NULL,
  call_id  TEXT NOT NULL,
  tool     TEXT NOT NULL,
  body     BLOB,                                -- sealed: arguments, result, and what takes it back
  at       REAL NOT NULL,
  PRIMARY KEY (tenant, session, number),
  UNIQUE (tenant, session, call_id)
) STRICT;

-- Runs that nobody drives are found without looking at all that wait.
CREATE INDEX chain_run_idle ON chain_run (updated_at, id)
  WHERE waits_for = '' AND state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED');
