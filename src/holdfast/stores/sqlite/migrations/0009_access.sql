-- Who may do what, as people change it while gateways run: keys, grants, what was taken back; what sessions have
-- read; approvals that cover more than one call.

-- --- keys and grants -----------------------------------------------------------------------------------------

CREATE TABLE access_key (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,                    -- the public part of hf_<id>_<secret>
  hash        TEXT NOT NULL,                    -- of the secret part
  person      TEXT NOT NULL,
  agent       TEXT,                             -- who holds it, where that is not the person
  scopes      TEXT,                             -- a JSON list that narrows; NULL does not
  made_by     TEXT NOT NULL,
  at          REAL NOT NULL,
  expires_at  REAL,
  ended_at    REAL,                             -- revoked
  ended_by    TEXT,
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE access_grant (
  tenant       TEXT NOT NULL,
  id           TEXT NOT NULL,
  person       TEXT NOT NULL,
  agent        TEXT,                            -- only this one, where it is named
  scope        TEXT NOT NULL,                   -- a pattern
  granted_by   TEXT NOT NULL,
  note         TEXT NOT NULL,
  at           REAL NOT NULL,
  expires_at   REAL NOT NULL,
  approval_id  TEXT,                            -- the answer that gave it, for an elevation
  ended_at     REAL,
  ended_by     TEXT,
  PRIMARY KEY (tenant, id)
) STRICT;

-- What claims must not rest on any more: 'key:ID', 'grant:ID', 'token:JTI'. Kept until it would have ended anyway.
CREATE TABLE revocation (
  tenant      TEXT NOT NULL,                    -- '*': a claim of any tenant looks here
  name        TEXT NOT NULL,
  revoked_by  TEXT NOT NULL,
  note        TEXT NOT NULL,
  at          REAL NOT NULL,
  until       REAL,                             -- NULL: for ever
  PRIMARY KEY (tenant, name)
) STRICT;

-- --- what a session has read ---------------------------------------------------------------------------------

CREATE TABLE session_label (
  tenant   TEXT NOT NULL,
  holder   TEXT NOT NULL,                       -- the session, else the principal
  label    TEXT NOT NULL,
  call_id  TEXT NOT NULL,                       -- what brought it first
  at       REAL NOT NULL,
  PRIMARY KEY (tenant, holder, label)
) STRICT;

-- --- approvals for more than one call ------------------------------------------------------------------------

CREATE TABLE standing_rule (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  tool        TEXT NOT NULL,
  body        TEXT NOT NULL,                    -- JSON: for whom, which arguments, which contract
  made_by     TEXT NOT NULL,
  note        TEXT NOT NULL,
  at          REAL NOT NULL,
  expires_at  REAL NOT NULL,
  most        INTEGER,                          -- uses at most
  used        INTEGER NOT NULL DEFAULT 0,
  ended_at    REAL,
  ended_by    TEXT,
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE plan (
  tenant       TEXT NOT NULL,
  id           TEXT NOT NULL,
  principal    TEXT NOT NULL,
  approval_id  TEXT NOT NULL,
  at           REAL NOT NULL,
  expires_at   REAL NOT NULL,
  ended_at     REAL,
  ended_by     TEXT,
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE plan_step (
  tenant           TEXT NOT NULL,
  plan             TEXT NOT NULL,
  number           INTEGER NOT NULL,
  tool             TEXT NOT NULL,
  contract_digest  TEXT NOT NULL,
  fingerprint      TEXT NOT NULL,
  cost             REAL,                        -- at most
  used_nonce       TEXT,                        -- the claim that consumed it
  call_id          TEXT,
  PRIMARY KEY (tenant, plan, number)
) STRICT;
