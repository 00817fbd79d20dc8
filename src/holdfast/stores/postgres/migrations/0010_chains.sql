-- Runs of chains: what each of them wanted, how far it has come, and who drives it.

CREATE TABLE chain_run (
  tenant        text COLLATE "C" NOT NULL,
  id            text COLLATE "C" NOT NULL,
  chain         text COLLATE "C" NOT NULL,
  version       text COLLATE "C" NOT NULL,
  principal     text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL,        -- whoever starts it twice with one key starts it once
  fingerprint   text COLLATE "C" NOT NULL,        -- of declaration and input: the same key for something else is refused
  call_id       text COLLATE "C" NOT NULL,        -- the call it is; '' where it was not started by one
  state         text COLLATE "C" NOT NULL,
  waits_for     text NOT NULL DEFAULT '',
  waits_on      text COLLATE "C" NOT NULL DEFAULT '',
  why           text NOT NULL DEFAULT '',
  body          bytea NOT NULL,                   -- sealed: the declaration, the input, who wanted it
  output        bytea,                            -- sealed
  round         bigint NOT NULL DEFAULT 0,        -- how often it was taken up
  created_at    double precision NOT NULL,
  updated_at    double precision NOT NULL,
  spent_s       double precision NOT NULL DEFAULT 0,
  cancelled_by  text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, principal, chain, key)
);

CREATE INDEX chain_run_open ON chain_run (updated_at, id)
  WHERE state IN ('RUNNING', 'COMPENSATING', 'COMPENSATION_FAILED');
CREATE INDEX chain_run_call ON chain_run (tenant, call_id) WHERE call_id <> '';
CREATE INDEX chain_run_waits ON chain_run (tenant, waits_on) WHERE waits_on <> '';
CREATE INDEX chain_run_time ON chain_run (tenant, created_at);

CREATE TABLE chain_line (
  tenant   text COLLATE "C" NOT NULL,
  run      text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  number   bigint NOT NULL,                       -- its place in the journal, from 0
  state    text COLLATE "C" NOT NULL,
  tool     text COLLATE "C" NOT NULL,
  call_id  text COLLATE "C" NOT NULL,
  code     text COLLATE "C" NOT NULL,
  message  text NOT NULL,
  writes   bigint NOT NULL,
  body     bytea,                                 -- sealed: arguments and result; erased once the run is over
  at       double precision NOT NULL,
  PRIMARY KEY (tenant, run, name),
  UNIQUE (tenant, run, number)
);

-- Who drives runs under which name: what a dead process had taken up is found by it.
CREATE TABLE chain_slot (
  tenant      text COLLATE "C" NOT NULL,          -- '*'
  slot        text COLLATE "C" NOT NULL,
  owner       text COLLATE "C" NOT NULL,          -- itself; or whoever takes over what it left
  lease_until double precision NOT NULL,
  PRIMARY KEY (tenant, slot)
);

-- What is known of the undoing of a step: shown in a twin, refuted there, or accepted by a person.
CREATE TABLE chain_evidence (
  tenant  text COLLATE "C" NOT NULL,
  digest  text COLLATE "C" NOT NULL,              -- of the step and of the contracts of doing and undoing
  how     text COLLATE "C" NOT NULL,
  person  text COLLATE "C" NOT NULL,
  body    bytea NOT NULL,                         -- sealed: the chain, the step, the note
  at      double precision NOT NULL,
  PRIMARY KEY (tenant, digest)
);

-- --- whose rows these are: as in step 4 ----------------------------------------------------------------------

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['chain_run', 'chain_line', 'chain_slot', 'chain_evidence']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON %I USING (CASE WHEN serves(tenant) THEN true ELSE false END) WITH CHECK (serves(tenant))',
      name
    );
  END LOOP;
END $$;
