-- What is under way beside the ledger: which tool of a capability has a key, what may not be changed at once,
-- jobs that go on at their upstream, and sessions that are open there.

-- The tool that answers for a key of a capability: no other one of it may be claimed under that key.
CREATE TABLE capability_level (
  tenant      text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  capability  text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  tool        text COLLATE "C" NOT NULL,
  updated_at  double precision NOT NULL,
  PRIMARY KEY (tenant, principal, capability, key)
);

-- What a write under way changes: whoever wants to change the same waits for it.
CREATE TABLE effect_lock (
  tenant    text COLLATE "C" NOT NULL,
  resource  text COLLATE "C" NOT NULL,            -- a commitment: ids are nobody's business
  kind      text COLLATE "C" NOT NULL,
  whole     bigint NOT NULL,                      -- all of its kind
  call_id   text COLLATE "C" NOT NULL,
  nonce     text COLLATE "C" NOT NULL,            -- of the attempt
  at        double precision NOT NULL,
  PRIMARY KEY (tenant, resource)
);
CREATE INDEX effect_lock_kind ON effect_lock (tenant, kind);
CREATE INDEX effect_lock_call ON effect_lock (tenant, call_id);

-- What was submitted and goes on without a call.
CREATE TABLE job (
  tenant      text COLLATE "C" NOT NULL,
  call_id     text COLLATE "C" NOT NULL,
  state       text COLLATE "C" NOT NULL,          -- RUNNING, CANCELLING, ENDED
  body        bytea NOT NULL,                     -- sealed: what the upstream calls it
  token       text COLLATE "C" NOT NULL,          -- a digest: whoever knows the address may say that there is news
  progress    double precision,
  ends_at     double precision,                   -- when it is expected to end
  polls       bigint NOT NULL DEFAULT 0,
  next_at     double precision NOT NULL,
  give_up_at  double precision NOT NULL,
  taken_by    text COLLATE "C" NOT NULL DEFAULT '',
  taken_until double precision NOT NULL DEFAULT 0,
  why         text NOT NULL DEFAULT '',
  created_at  double precision NOT NULL,
  updated_at  double precision NOT NULL,
  PRIMARY KEY (tenant, call_id)
);
CREATE INDEX job_due ON job (next_at) WHERE state <> 'ENDED';
CREATE INDEX job_token ON job (token);

-- Sessions that an upstream keeps open, and what was done in them.
CREATE TABLE upstream_session (
  tenant      text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  namespace   text COLLATE "C" NOT NULL,
  name        text COLLATE "C" NOT NULL,
  state       text COLLATE "C" NOT NULL,          -- OPEN, COMMITTING, COMMITTED, ROLLING_BACK, ROLLED_BACK, UNKNOWN, UNDONE
  call_id     text COLLATE "C" NOT NULL,          -- the call that began it
  worker      text COLLATE "C" NOT NULL,          -- whose process it ends with; '' where with none
  body        bytea NOT NULL,                     -- sealed: what the upstream calls it, who began it
  at_work     text COLLATE "C" NOT NULL DEFAULT '', -- the last call that wrote in it, committed it or rolled it back
  why         text NOT NULL DEFAULT '',
  idle_s      double precision NOT NULL,
  created_at  double precision NOT NULL,
  touched_at  double precision NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX upstream_session_open ON upstream_session (touched_at)
  WHERE state IN ('OPEN', 'COMMITTING', 'ROLLING_BACK', 'UNKNOWN');
CREATE INDEX upstream_session_newest ON upstream_session (tenant, created_at);
CREATE UNIQUE INDEX upstream_session_call ON upstream_session (tenant, call_id);

CREATE TABLE upstream_session_line (
  tenant   text COLLATE "C" NOT NULL,
  session  text COLLATE "C" NOT NULL,
  number   bigint NOT NULL,
  call_id  text COLLATE "C" NOT NULL,
  tool     text COLLATE "C" NOT NULL,
  body     bytea,                                 -- sealed: arguments, result, and what takes it back
  at       double precision NOT NULL,
  PRIMARY KEY (tenant, session, number),
  UNIQUE (tenant, session, call_id)
);

-- Runs that nobody drives are found without looking at all that wait.
CREATE INDEX chain_run_idle ON chain_run (updated_at, id)
  WHERE waits_for = '' AND state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED');

-- --- whose rows these are: as in step 4 ----------------------------------------------------------------------

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['capability_level', 'effect_lock', 'job', 'upstream_session', 'upstream_session_line']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON %I USING (CASE WHEN serves(tenant) THEN true ELSE false END) WITH CHECK (serves(tenant))',
      name
    );
  END LOOP;
END $$;
