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
  in_person   INTEGER NOT NULL,                 -- 1: whoever holds it may act with the person's roles
  made_by     TEXT NOT NULL,
  at          REAL NOT NULL,
  expires_at  REAL,
  ended_at    REAL,                             -- revoked
  ended_by    TEXT,
  changed     INTEGER NOT NULL,                 -- the number of the last change, over these three tables
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX access_key_changed ON access_key (changed);

CREATE TABLE access_grant (
  tenant       TEXT NOT NULL,
  id           TEXT NOT NULL,
  person       TEXT NOT NULL,
  agent        TEXT,                            -- only this one, where it is named
  scope        TEXT NOT NULL,                   -- a pattern
  granted_by   TEXT NOT NULL,
  note         TEXT NOT NULL,
  at           REAL NOT NULL,
  expires_at   REAL NOT NULL,                   -- 0 while it waits for an approval
  life_s       REAL NOT NULL,                   -- how long it lasts from when it begins, or is renewed
  renewed      INTEGER NOT NULL,                -- 1: before it ends it is renewed
  approval_id  TEXT,                            -- the answer that gave it, for an elevation
  ended_at     REAL,
  ended_by     TEXT,
  changed      INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX access_grant_changed ON access_grant (changed);

-- What claims must not rest on any more: 'TENANT/key:ID', 'TENANT/grant:ID', 'TENANT/token:JTI'. Kept until it would
-- have ended anyway; the newest is kept longer, so that no number is given twice.
CREATE TABLE revocation (
  tenant      TEXT NOT NULL,                    -- '*': a claim of any tenant looks here
  name        TEXT NOT NULL,
  revoked_by  TEXT NOT NULL,
  note        TEXT NOT NULL,
  at          REAL NOT NULL,
  until       REAL,                             -- NULL: for ever
  changed     INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT;

CREATE INDEX revocation_changed ON revocation (changed);

-- --- what a session has read ---------------------------------------------------------------------------------

CREATE TABLE session_label (
  tenant     TEXT NOT NULL,
  holder     TEXT NOT NULL,                     -- 'session:PERSON/NAME', 'task:PERSON/NAME' or 'principal:ID'
  label      TEXT NOT NULL,
  principal  TEXT NOT NULL,                     -- who brought it
  call_id    TEXT NOT NULL,                     -- with what, first
  at         REAL NOT NULL,                     -- first
  seen_at    REAL NOT NULL,                     -- last, to a few seconds
  lifted_at  REAL NOT NULL DEFAULT 0,           -- 0: it is held
  lifted_by  TEXT,
  note       TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, holder, label, principal, lifted_at)
) STRICT;

CREATE INDEX session_label_principal ON session_label (tenant, principal, lifted_at);

-- --- approvals for more than one call ------------------------------------------------------------------------

CREATE TABLE standing_rule (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  tool        TEXT NOT NULL,
  body        BLOB NOT NULL,                    -- sealed: for whom, which arguments, which contract
  approval_id TEXT NOT NULL,                    -- the question that people answered
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

CREATE INDEX standing_rule_tool ON standing_rule (tenant, tool);

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

CREATE INDEX plan_principal ON plan (tenant, principal, at);

CREATE TABLE plan_step (
  tenant           TEXT NOT NULL,
  plan             TEXT NOT NULL,
  number           INTEGER NOT NULL,
  tool             TEXT NOT NULL,
  contract_digest  TEXT NOT NULL,
  fingerprint      TEXT NOT NULL,
  body             BLOB,                        -- sealed: what the arguments must be, where they are not known
  cost             REAL,                        -- at most
  used_nonce       TEXT,                        -- the claim that consumed it
  call_id          TEXT,
  PRIMARY KEY (tenant, plan, number)
) STRICT;
