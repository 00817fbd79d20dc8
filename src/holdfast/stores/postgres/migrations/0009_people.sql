-- What people look at and are told: calls as a list, traffic and cost by the minute and the day, alerts, notices on
-- their way out, and who is signed in to the console.

-- --- a view of the records -----------------------------------------------------------------------------------
-- Made from the tree, leaf by leaf, beside the calls and never on their way. Whatever is lost of it is made again.

CREATE TABLE call_view (
  tenant       text COLLATE "C" NOT NULL,
  call_id      text COLLATE "C" NOT NULL,
  at           double precision NOT NULL,         -- of the first record
  updated_at   double precision NOT NULL,         -- of the last
  tool         text COLLATE "C" NOT NULL,         -- '' until a record says it: such a row is not shown
  version      text COLLATE "C" NOT NULL,
  caller       text COLLATE "C" NOT NULL,
  agent        text COLLATE "C" NOT NULL,
  effect       text COLLATE "C" NOT NULL,         -- the mutation class; '' where no tool was found
  status       text COLLATE "C" NOT NULL,         -- of the observation; 'running' until there is one
  code         text COLLATE "C" NOT NULL,         -- '' where there is none
  latency_ms   double precision,
  attempts     bigint NOT NULL DEFAULT 0,
  replayed     bigint NOT NULL DEFAULT 0,
  alarms       bigint NOT NULL DEFAULT 0,
  task         text COLLATE "C" NOT NULL DEFAULT '',
  approval_id  text COLLATE "C" NOT NULL DEFAULT '',
  cost         bigint NOT NULL DEFAULT 0,         -- in millionths
  upstream     text COLLATE "C" NOT NULL,         -- the namespace of the tool
  leaf         bigint NOT NULL,                   -- of the first record: in this order calls come into the view
  stated_at    double precision NOT NULL,         -- of the record that the status is from; 0: nothing ran or was held
  ended        text COLLATE "C" NOT NULL,         -- the attempt that was counted last
  paid         text COLLATE "C" NOT NULL,         -- the attempt whose cost was added last
  PRIMARY KEY (tenant, call_id)
);

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
  tenant  text COLLATE "C" NOT NULL,
  minute  bigint NOT NULL,                        -- since 1970
  tool    text COLLATE "C" NOT NULL,              -- '' where there is no such tool
  status  text COLLATE "C" NOT NULL,              -- as answered, or 'replayed'
  code    text COLLATE "C" NOT NULL,
  bucket  bigint NOT NULL,                        -- of latency: four to each doubling of a millisecond
  caller  text COLLATE "C" NOT NULL,
  calls   bigint NOT NULL,
  PRIMARY KEY (tenant, minute, tool, status, code, bucket, caller)
);

CREATE INDEX traffic_minute ON traffic (minute);

-- Of everybody, for long stretches of time.

CREATE TABLE traffic_hour (
  tenant  text COLLATE "C" NOT NULL,
  hour    bigint NOT NULL,                        -- since 1970
  status  text COLLATE "C" NOT NULL,
  bucket  bigint NOT NULL,
  calls   bigint NOT NULL,
  PRIMARY KEY (tenant, hour, status, bucket)
);

CREATE TABLE traffic_day (
  tenant  text COLLATE "C" NOT NULL,
  day     bigint NOT NULL,                        -- since 1970
  tool    text COLLATE "C" NOT NULL,
  status  text COLLATE "C" NOT NULL,
  bucket  bigint NOT NULL,
  calls   bigint NOT NULL,
  PRIMARY KEY (tenant, day, tool, status, bucket)
);

CREATE TABLE spending (
  tenant    text COLLATE "C" NOT NULL,
  day       bigint NOT NULL,                      -- since 1970
  task      text COLLATE "C" NOT NULL,
  tool      text COLLATE "C" NOT NULL,
  caller    text COLLATE "C" NOT NULL,
  part      text COLLATE "C" NOT NULL,            -- one of the parts a cost has
  currency  text COLLATE "C" NOT NULL,
  calls     bigint NOT NULL,
  cost      bigint NOT NULL,                      -- in millionths
  PRIMARY KEY (tenant, day, task, tool, caller, currency, part)
);

-- The same without tasks, of which there are many more than of anything else.
CREATE TABLE spending_day (
  tenant    text COLLATE "C" NOT NULL,
  day       bigint NOT NULL,
  tool      text COLLATE "C" NOT NULL,
  caller    text COLLATE "C" NOT NULL,
  part      text COLLATE "C" NOT NULL,
  currency  text COLLATE "C" NOT NULL,
  calls     bigint NOT NULL,
  cost      bigint NOT NULL,
  PRIMARY KEY (tenant, day, tool, caller, currency, part)
);

CREATE TABLE view_mark (
  tenant  text COLLATE "C" NOT NULL,              -- '*'
  name    text COLLATE "C" NOT NULL,
  leaf    bigint NOT NULL,                        -- the last one that is in the view
  PRIMARY KEY (tenant, name)
);

-- --- what people are told ------------------------------------------------------------------------------------

CREATE TABLE alert (
  tenant    text COLLATE "C" NOT NULL,            -- '*': the gateway's own
  id        text COLLATE "C" NOT NULL,
  kind      text COLLATE "C" NOT NULL,
  subject   text COLLATE "C" NOT NULL,            -- a tool, an upstream, a principal, a role
  text      text NOT NULL,
  facts     text NOT NULL,                        -- JSON: the figures it rests on
  at        double precision NOT NULL,
  seen_at   double precision NOT NULL,            -- when it was last true
  ended_at  double precision,
  PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX alert_open ON alert (tenant, kind, subject) WHERE ended_at IS NULL;
CREATE INDEX alert_time ON alert (tenant, at);

CREATE TABLE notice (
  tenant     text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL,           -- made from what it tells, so that it is told once
  channel    text COLLATE "C" NOT NULL,           -- its name in the configuration
  recipient  text COLLATE "C" NOT NULL DEFAULT '', -- of a mail
  event      text COLLATE "C" NOT NULL,
  about      text COLLATE "C" NOT NULL,           -- the approval or alert
  body       bytea NOT NULL,                      -- sealed
  at         double precision NOT NULL,
  due_at     double precision NOT NULL,           -- when to try next
  leased     double precision NOT NULL DEFAULT 0, -- somebody is sending it, until then at most
  tries      bigint NOT NULL DEFAULT 0,
  sent_at    double precision,
  failed_at  double precision,                    -- given up
  said       text NOT NULL DEFAULT '',            -- what went wrong last
  PRIMARY KEY (tenant, id)
);

CREATE INDEX notice_due ON notice (due_at) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX notice_time ON notice (tenant, at);
CREATE INDEX notice_mail ON notice (channel, recipient, sent_at) WHERE recipient <> '';

CREATE TABLE telling (                            -- how far people were told of a question
  tenant       text COLLATE "C" NOT NULL,
  approval_id  text COLLATE "C" NOT NULL,
  level        bigint NOT NULL,                   -- of escalation; -1: of its answer only
  ended        bigint NOT NULL DEFAULT 0,         -- its answer was told
  at           double precision NOT NULL,
  PRIMARY KEY (tenant, approval_id)
);

CREATE INDEX telling_open ON telling (tenant, approval_id) WHERE ended = 0;

-- what people answered, newest first: proposed rules and how tired people are
CREATE INDEX approval_answered ON approval (tenant, created_at) WHERE answer <> 'PENDING';

-- --- who is signed in ----------------------------------------------------------------------------------------

CREATE TABLE console_session (
  tenant      text COLLATE "C" NOT NULL,          -- '*': whose it is is known once it is opened
  hash        text COLLATE "C" NOT NULL,          -- of what the cookie says
  person      text COLLATE "C" NOT NULL,
  sealed      bytea NOT NULL,                     -- the credential, asked again at every request
  at          double precision NOT NULL,
  seen_at     double precision NOT NULL,          -- to a minute
  expires_at  double precision NOT NULL,
  PRIMARY KEY (tenant, hash)
);

CREATE INDEX console_session_over ON console_session (expires_at);

-- --- whose rows these are: as in step 4 ----------------------------------------------------------------------

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['call_view', 'traffic', 'traffic_hour', 'traffic_day', 'spending', 'spending_day', 'view_mark', 'alert', 'notice', 'telling', 'console_session']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON %I USING (CASE WHEN serves(tenant) THEN true ELSE false END) WITH CHECK (serves(tenant))',
      name
    );
  END LOOP;
END $$;

CREATE POLICY common ON alert FOR SELECT USING (shares(tenant));
