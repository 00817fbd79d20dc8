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
  made_by     text COLLATE "C" NOT NULL,
  at          double precision NOT NULL,
  expires_at  double precision,
  ended_at    double precision,                   -- revoked
  ended_by    text COLLATE "C",
  PRIMARY KEY (tenant, id)
);

CREATE TABLE access_grant (
  tenant       text COLLATE "C" NOT NULL,
  id           text COLLATE "C" NOT NULL,
  person       text COLLATE "C" NOT NULL,
  agent        text COLLATE "C",                  -- only this one, where it is named
  scope        text COLLATE "C" NOT NULL,         -- a pattern
  granted_by   text COLLATE "C" NOT NULL,
  note         text NOT NULL,
  at           double precision NOT NULL,
  expires_at   double precision NOT NULL,
  approval_id  text COLLATE "C",                  -- the answer that gave it, for an elevation
  ended_at     double precision,
  ended_by     text COLLATE "C",
  PRIMARY KEY (tenant, id)
);

-- What claims must not rest on any more: 'key:ID', 'grant:ID', 'token:JTI'. Kept until it would have ended anyway.
CREATE TABLE revocation (
  tenant      text COLLATE "C" NOT NULL,          -- '*': a claim of any tenant looks here
  name        text COLLATE "C" NOT NULL,
  revoked_by  text COLLATE "C" NOT NULL,
  note        text NOT NULL,
  at          double precision NOT NULL,
  until       double precision,                   -- NULL: for ever
  PRIMARY KEY (tenant, name)
);

-- --- what a session has read ---------------------------------------------------------------------------------

CREATE TABLE session_label (
  tenant   text COLLATE "C" NOT NULL,
  holder   text COLLATE "C" NOT NULL,             -- the session, else the principal
  label    text COLLATE "C" NOT NULL,
  call_id  text COLLATE "C" NOT NULL,             -- what brought it first
  at       double precision NOT NULL,
  PRIMARY KEY (tenant, holder, label)
);

-- --- approvals for more than one call ------------------------------------------------------------------------

CREATE TABLE standing_rule (
  tenant      text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  tool        text COLLATE "C" NOT NULL,
  body        text NOT NULL,                      -- JSON: for whom, which arguments, which contract
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

CREATE TABLE plan_step (
  tenant           text COLLATE "C" NOT NULL,
  plan             text COLLATE "C" NOT NULL,
  number           bigint NOT NULL,
  tool             text COLLATE "C" NOT NULL,
  contract_digest  text COLLATE "C" NOT NULL,
  fingerprint      text COLLATE "C" NOT NULL,
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
