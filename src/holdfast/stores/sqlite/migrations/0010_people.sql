-- What people look at and are told: calls as a list, traffic and cost by the minute and the day, alerts, notices on
-- their way out, and who is signed in to the console.

-- --- a view of the records -----------------------------------------------------------------------------------
-- Made from the tree, leaf by leaf, beside the calls and never on their way. Whatever is lost of it is made again.

CREATE TABLE call_view (
  tenant       TEXT NOT NULL,
  call_id      TEXT NOT NULL,
  at           REAL NOT NULL,                   -- of the first record
  updated_at   REAL NOT NULL,                   -- of the last
  tool         TEXT NOT NULL,                   -- '' until a record says it: such a row is not shown
  version      TEXT NOT NULL,
  caller       TEXT NOT NULL,
  agent        TEXT NOT NULL,
  effect       TEXT NOT NULL,                   -- the mutation class; '' where no tool was found
  status       TEXT NOT NULL,                   -- of the observation; 'running' until there is one
  code         TEXT NOT NULL,                   -- '' where there is none
  latency_ms   REAL,
  attempts     INTEGER NOT NULL DEFAULT 0,
  replayed     INTEGER NOT NULL DEFAULT 0,
  alarms       INTEGER NOT NULL DEFAULT 0,
  task         TEXT NOT NULL DEFAULT '',
  approval_id  TEXT NOT NULL DEFAULT '',
  cost         INTEGER NOT NULL DEFAULT 0,      -- in millionths
  upstream     TEXT NOT NULL,                   -- the namespace of the tool
  leaf         INTEGER NOT NULL,                -- of the first record: in this order calls come into the view
  stated_at    REAL NOT NULL,                   -- of the record that the status is from; 0: nothing ran or was held
  ended        TEXT NOT NULL,                   -- the attempt that was counted last
  paid         TEXT NOT NULL,                   -- the attempt whose cost was added last
  PRIMARY KEY (tenant, call_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX call_view_time ON call_view (tenant, at, call_id);
CREATE INDEX call_view_leaf ON call_view (tenant, leaf);
CREATE INDEX call_view_tool ON call_view (tenant, tool, at, call_id);
CREATE INDEX call_view_upstream ON call_view (tenant, upstream, at, call_id);
CREATE INDEX call_view_caller ON call_view (tenant, caller, at, call_id);
CREATE INDEX call_view_agent ON call_view (tenant, agent, at, call_id);
CREATE INDEX call_view_status ON call_view (tenant, status, at, call_id) WHERE status <> 'done';
CREATE INDEX call_view_effect ON call_view (tenant, effect, at, call_id) WHERE effect <> 'read_only';
CREATE INDEX call_view_code ON call_view (tenant, code, at, call_id) WHERE code <> '';
CREATE INDEX call_view_task ON call_view (tenant, task, at, call_id) WHERE task <> '';
CREATE INDEX call_view_alarmed ON call_view (tenant, at, call_id) WHERE alarms > 0;

CREATE TABLE traffic (
  tenant  TEXT NOT NULL,
  minute  INTEGER NOT NULL,                     -- since 1970
  tool    TEXT NOT NULL,                        -- '' where there is no such tool
  status  TEXT NOT NULL,                        -- as answered, or 'replayed'
  code    TEXT NOT NULL,
  bucket  INTEGER NOT NULL,                     -- of latency: four to each doubling of a millisecond
  caller  TEXT NOT NULL,
  calls   INTEGER NOT NULL,
  PRIMARY KEY (tenant, minute, tool, status, code, bucket, caller)
) STRICT, WITHOUT ROWID;

CREATE INDEX traffic_minute ON traffic (minute);

-- Of everybody, for long stretches of time.

CREATE TABLE traffic_hour (
  tenant  TEXT NOT NULL,
  hour    INTEGER NOT NULL,                     -- since 1970
  status  TEXT NOT NULL,
  bucket  INTEGER NOT NULL,
  calls   INTEGER NOT NULL,
  PRIMARY KEY (tenant, hour, status, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE traffic_day (
  tenant  TEXT NOT NULL,
  day     INTEGER NOT NULL,                     -- since 1970
  tool    TEXT NOT NULL,
  status  TEXT NOT NULL,
  bucket  INTEGER NOT NULL,
  calls   INTEGER NOT NULL,
  PRIMARY KEY (tenant, day, tool, status, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE spending (
  tenant    TEXT NOT NULL,
  day       INTEGER NOT NULL,                   -- since 1970
  task      TEXT NOT NULL,
  tool      TEXT NOT NULL,
  caller    TEXT NOT NULL,
  part      TEXT NOT NULL,                      -- one of the parts a cost has
  currency  TEXT NOT NULL,
  calls     INTEGER NOT NULL,
  cost      INTEGER NOT NULL,                   -- in millionths
  PRIMARY KEY (tenant, day, task, tool, caller, currency, part)
) STRICT, WITHOUT ROWID;

-- The same without tasks, of which there are many more than of anything else.
CREATE TABLE spending_day (
  tenant    TEXT NOT NULL,
  day       INTEGER NOT NULL,
  tool      TEXT NOT NULL,
  caller    TEXT NOT NULL,
  part      TEXT NOT NULL,
  currency  TEXT NOT NULL,
  calls     INTEGER NOT NULL,
  cost      INTEGER NOT NULL,
  PRIMARY KEY (tenant, day, tool, caller, currency, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE view_mark (
  tenant  TEXT NOT NULL,                        -- '*'
  name    TEXT NOT NULL,
  leaf    INTEGER NOT NULL,                     -- the last one that is in the view
  PRIMARY KEY (tenant, name)
) STRICT;

-- --- what people are told ------------------------------------------------------------------------------------

CREATE TABLE alert (
  tenant    TEXT NOT NULL,                      -- '*': the gateway's own
  id        TEXT NOT NULL,
  kind      TEXT NOT NULL,
  subject   TEXT NOT NULL,                      -- a tool, an upstream, a principal, a role
  text      TEXT NOT NULL,
  facts     TEXT NOT NULL,                      -- JSON: the figures it rests on
  at        REAL NOT NULL,
  seen_at   REAL NOT NULL,                      -- when it was last true
  ended_at  REAL,
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE UNIQUE INDEX alert_open ON alert (tenant, kind, subject) WHERE ended_at IS NULL;
CREATE INDEX alert_time ON alert (tenant, at);

CREATE TABLE notice (
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,                     -- made from what it tells, so that it is told once
  channel    TEXT NOT NULL,                     -- its name in the configuration
  recipient  TEXT NOT NULL DEFAULT '',          -- of a mail
  event      TEXT NOT NULL,
  about      TEXT NOT NULL,                     -- the approval or alert
  body       BLOB NOT NULL,                     -- sealed
  at         REAL NOT NULL,
  due_at     REAL NOT NULL,                     -- when to try next
  leased     REAL NOT NULL DEFAULT 0,           -- somebody is sending it, until then at most
  tries      INTEGER NOT NULL DEFAULT 0,
  sent_at    REAL,
  failed_at  REAL,                              -- given up
  said       TEXT NOT NULL DEFAULT '',          -- what went wrong last
  PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX notice_due ON notice (due_at) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX notice_time ON notice (tenant, at);
CREATE INDEX notice_mail ON notice (channel, recipient, sent_at) WHERE recipient <> '';

CREATE TABLE telling (                          -- how far people were told of a question
  tenant       TEXT NOT NULL,
  approval_id  TEXT NOT NULL,
  level        INTEGER NOT NULL,                -- of escalation; -1: of its answer only
  ended        INTEGER NOT NULL DEFAULT 0,      -- its answer was told
  at           REAL NOT NULL,
  PRIMARY KEY (tenant, approval_id)
) STRICT;

CREATE INDEX telling_open ON telling (tenant, approval_id) WHERE ended = 0;

-- what people answered, newest first: proposed rules and how tired people are
CREATE INDEX approval_answered ON approval (tenant, created_at) WHERE answer <> 'PENDING';

-- --- who is signed in ----------------------------------------------------------------------------------------

CREATE TABLE console_session (
  tenant      TEXT NOT NULL,                    -- '*': whose it is is known once it is opened
  hash        TEXT NOT NULL,                    -- of what the cookie says
  person      TEXT NOT NULL,
  sealed      BLOB NOT NULL,                    -- the credential, asked again at every request
  at          REAL NOT NULL,
  seen_at     REAL NOT NULL,                    -- to a minute
  expires_at  REAL NOT NULL,
  PRIMARY KEY (tenant, hash)
) STRICT;

CREATE INDEX console_session_over ON console_session (expires_at);
