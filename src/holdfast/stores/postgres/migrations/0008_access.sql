-- Who may do what, as people change it while gateways run: keys, grants, what was taken back; what sessions have
-- read; approvals that cover more than one call.

-- --- keys and grants -----------------------------------------------------------------------------------------

CREATE TABLE access_key (
  tenant      text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,          -- the public part of hf_<id>_<secret>
  hash        text NOT NULL,                      -- of the secret part
  person      text COLLATE "C" NOT NULL,
  agent       text COLLATE "C",                   -- who holds it, where that is not the person
  scopes      text,                               -- a JSON list that narrows; NULL does not
  in_person   bigint NOT NULL,                    -- 1: whoever holds it may act with the person's roles
  made_by     text COLLATE "C" NOT NULL,
  at          double precision NOT NULL,
  expires_at  double precision,
  ended_at    double precision,                   -- revoked
  ended_by    text COLLATE "C",
  changed     bigint NOT NULL,                    -- the number of the last change, over these three tables
  PRIMARY KEY (tenant, id)
);

CREATE INDEX access_key_changed ON access_key (changed);

CREATE TABLE access_grant (
  tenant       text COLLATE "C" NOT NULL,
  id           text COLLATE "C" NOT NULL,
  person       text COLLATE "C" NOT NULL,
  agent        text COLLATE "C",                  -- only this one, where it is named
  scope        text COLLATE "C" NOT NULL,         -- a pattern
  granted_by   text COLLATE "C" NOT NULL,
  note         text NOT NULL,
  at           double precision NOT NULL,
  expires_at   double precision NOT NULL,         -- 0 while it waits for an approval
  life_s       double precision NOT NULL,         -- how long it lasts from when it begins, or is renewed
  renewed      bigint NOT NULL,                   -- 1: before it ends it is renewed
  approval_id  text COLLATE "C",                  -- the answer that gave it, for an elevation
  ended_at     double precision,
  ended_by     text COLLATE "C",
  changed      bigint NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE INDEX access_grant_changed ON access_grant (changed);

-- What claims must not rest on any more: 'TENANT/key:ID', 'TENANT/grant:ID', 'TENANT/token:JTI'. Kept until it would
-- have ended anyway; the newest is kept longer, so that no number is given twice.
CREATE TABLE revocation (
  tenant      text COLLATE "C" NOT NULL,          -- '*': a claim of any tenant looks here
  name        text COLLATE "C" NOT NULL,
  revoked_by  text COLLATE "C" NOT NULL,
  note        text NOT NULL,
  at          double precision NOT NULL,
  until       double precision,                   -- NULL: for ever
  changed     bigint NOT NULL,
  PRIMARY KEY (tenant, name)
);

CREATE INDEX revocation_changed ON revocation (changed);

-- --- what a session has read ---------------------------------------------------------------------------------

CREATE TABLE session_label (
  tenant     text COLLATE "C" NOT NULL,
  holder     text COLLATE "C" NOT NULL,           -- 'session:PERSON/NAME', 'task:PERSON/NAME' or 'principal:ID'
  label      text COLLATE "C" NOT NULL,
  principal  text COLLATE "C" NOT NULL,           -- who brought it
  call_id    text COLLATE "C" NOT NULL,           -- with what, first
  at         double precision NOT NULL,           -- first
  seen_at    double precision NOT NULL,           -- last, to a few seconds
  lifted_at  double precision NOT NULL DEFAULT 0, -- 0: it is held
  lifted_by  text COLLATE "C",
  note       text NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, holder, label, principal, lifted_at)
);

CREATE INDEX session_label_principal ON session_label (tenant, principal, lifted_at);

-- --- approvals for more than one call ------------------------------------------------------------------------

CREATE TABLE standing_rule (
  tenant      text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  tool        text COLLATE "C" NOT NULL,
  body        bytea NOT NULL,                       -- sealed: for whom, which arguments, which contract
  approval_id text COLLATE "C" NOT NULL,         -- the question that people answered
  made_by     text COLLATE "C" NOT NULL,
  note        text NOT NULL,
  at          double precision NOT NULL,
  expires_at  double precision NOT NULL,
  most        bigint,                             -- uses at most
  used        bigint NOT NULL DEFAULT 0,
  ended_at    double precision,
  ended_by    text COLLATE "C",
  PRIMARY KEY (tenant, id)
);

CREATE INDEX standing_rule_tool ON standing_rule (tenant, tool);

CREATE TABLE plan (
  tenant       text COLLATE "C" NOT NULL,
  id           text COLLATE "C" NOT NULL,
  principal    text COLLATE "C" NOT NULL,
  approval_id  text COLLATE "C" NOT NULL,
  at           double precision NOT NULL,
  expires_at   double precision NOT NULL,
  ended_at     double precision,
  ended_by     text COLLATE "C",
  PRIMARY KEY (tenant, id)
);

CREATE INDEX plan_principal ON plan (tenant, principal, at);

CREATE TABLE plan_step (
  tenant           text COLLATE "C" NOT NULL,
  plan             text COLLATE "C" NOT NULL,
  number           bigint NOT NULL,
  tool             text COLLATE "C" NOT NULL,
  contract_digest  text COLLATE "C" NOT NULL,
  fingerprint      text COLLATE "C" NOT NULL,
  body             bytea,                          -- sealed: what the arguments must be, where they are not known
  cost             double precision,              -- at most
  used_nonce       text COLLATE "C",              -- the claim that consumed it
  call_id          text COLLATE "C",
  PRIMARY KEY (tenant, plan, number)
);
-- --- whose rows these are: as in step 4 ----------------------------------------------------------------------

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['access_key', 'access_grant', 'revocation', 'session_label', 'standing_rule', 'plan',
    'plan_step']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON %I USING (CASE WHEN serves(tenant) THEN true ELSE false END) WITH CHECK (serves(tenant))',
      name
    );
  END LOOP;
END $$;

CREATE POLICY common ON revocation FOR SELECT USING (shares(tenant));

-- --- what a claim looks at: as in steps 5 and 6, and at what was taken back -----------------------------------

CREATE OR REPLACE FUNCTION unhindered(halt_names text[], judged boolean, judged_under text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7522750128418024293);
  IF EXISTS (SELECT FROM halt WHERE tenant = '*' AND target = ANY (halt_names))
    OR EXISTS (SELECT FROM revocation WHERE tenant = '*' AND name = ANY (halt_names))
  THEN
    RETURN false;
  END IF;
  RETURN NOT judged OR judged_under IS NOT DISTINCT FROM (
    SELECT version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 1);
END $$;

CREATE OR REPLACE FUNCTION batch(
  for_tenant text, durable boolean, halt_names text[], judged_under text[],
  -- what is claimed
  principals text[], tools text[], keys text[], call_ids text[], versions text[], contract_digests text[],
  fingerprints text[], nonces text[], owners text[], key_sources text[], trace_ids text[], nows double precision[],
  boot_ids text[], deadline_boots double precision[], lease_boots double precision[], windows_s double precision[],
  approval_ids text[], payloads bytea[], attendants text[],
  -- what has ended
  end_states text[], end_outcomes bytea[], end_notes text[], end_nows double precision[],
  end_ats double precision[], end_boot_ids text[], end_boots double precision[], end_principals text[],
  end_tools text[], end_keys text[], end_epochs bigint[], end_nonces text[],
  -- what is recorded of it
  by_writer text, first_seq bigint, first_prev bytea, of_call_ids text[], kinds text[], ats double precision[],
  bodies text[], hashes bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  in_force text;
  claimed bigint;
  e record;
BEGIN
  PERFORM set_config('holdfast.tenant', for_tenant, true);
  IF NOT durable THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  IF cardinality(hashes) > 1 THEN  -- nobody waits long for whom a neighbour waits
    PERFORM set_config('lock_timeout', '100ms', true);
  END IF;
  IF halt_names IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock_shared(7522750128418024293);
    IF EXISTS (SELECT FROM halt WHERE tenant = '*' AND target = ANY (halt_names))
      OR EXISTS (SELECT FROM revocation WHERE tenant = '*' AND name = ANY (halt_names))
    THEN
      RETURN false;
    END IF;
    IF cardinality(judged_under) > 0 THEN
      in_force := (
        SELECT version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 1);
      IF EXISTS (SELECT FROM unnest(judged_under) AS judged WHERE judged IS DISTINCT FROM in_force) THEN
        RETURN false;
      END IF;
    END IF;
  END IF;
  IF cardinality(keys) > 0 THEN
    INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state,
      epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, deadline_boot, lease_boot,
      window_s, approval_id, payload, attendant)
    SELECT for_tenant, c.principal, c.tool, c.key, c.call_id, c.version, c.contract_digest, c.fingerprint,
      'dispatched', 1, c.nonce, c.owner, c.key_source, c.trace_id, c.now, c.now, c.boot_id, c.deadline_boot,
      c.lease_boot, c.window_s, c.approval_id, c.payload, c.attendant
    FROM unnest(principals, tools, keys, call_ids, versions, contract_digests, fingerprints, nonces, owners,
      key_sources, trace_ids, nows, boot_ids, deadline_boots, lease_boots, windows_s, approval_ids, payloads,
      attendants) AS c (principal, tool, key, call_id, version, contract_digest, fingerprint, nonce, owner,
      key_source, trace_id, now, boot_id, deadline_boot, lease_boot, window_s, approval_id, payload, attendant)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    IF claimed < cardinality(keys) THEN
      RAISE SQLSTATE 'HF001';
    END IF;
  END IF;
  -- One by one, for a new table might be read from end to end in a join.
  FOR e IN
    SELECT * FROM unnest(end_states, end_outcomes, end_notes, end_nows, end_ats, end_boot_ids, end_boots,
      end_principals, end_tools, end_keys, end_epochs, end_nonces)
      AS u (state, outcome, note, now, ended_at, boot_id, boot, principal, tool, key, epoch, nonce)
  LOOP
    UPDATE operation SET state = e.state, outcome = e.outcome, note = e.note, updated_at = e.now,
      finished_at = e.ended_at, finished_boot_id = e.boot_id, forget_boot = e.boot + operation.window_s
    WHERE operation.tenant = for_tenant AND operation.principal = e.principal AND operation.tool = e.tool
      AND operation.key = e.key AND operation.epoch = e.epoch AND operation.nonce = e.nonce
      AND operation.state IN ('claimed', 'dispatched', 'unknown');
    IF NOT FOUND THEN
      RAISE SQLSTATE 'HF001';
    END IF;
  END LOOP;
  INSERT INTO record
  SELECT for_tenant, by_writer, first_seq + r.number - 1, r.call_id, r.kind, r.at, r.body,
    coalesce(hashes[r.number - 1], first_prev), r.hash
  FROM unnest(of_call_ids, kinds, ats, bodies, hashes) WITH ORDINALITY
    AS r (call_id, kind, at, body, hash, number);
  RETURN true;
EXCEPTION
  WHEN SQLSTATE 'HF001' OR lock_not_available THEN
    RETURN false;
END $$;
