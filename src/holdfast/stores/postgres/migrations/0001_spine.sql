-- The spine: operations, approvals, budgets, rates, brakes, keys. Tables and columns are those of the SQLite store,
-- in the same order, and mean what its steps say they mean. Names and keys compare byte by byte, as they do there.

CREATE TABLE operation (
  tenant           text COLLATE "C" NOT NULL,
  principal        text COLLATE "C" NOT NULL,
  tool             text COLLATE "C" NOT NULL,
  key              text COLLATE "C" NOT NULL,
  call_id          text COLLATE "C" NOT NULL,
  version          text NOT NULL,
  contract_digest  text NOT NULL,
  fingerprint      text COLLATE "C" NOT NULL,
  state            text COLLATE "C" NOT NULL,
  epoch            bigint NOT NULL,
  nonce            text NOT NULL,
  owner            text NOT NULL,
  key_source       text NOT NULL,
  trace_id         text NOT NULL,
  created_at       double precision NOT NULL,
  updated_at       double precision NOT NULL,
  boot_id          text NOT NULL,
  deadline_boot    double precision,
  lease_boot       double precision,
  finished_at      double precision,
  finished_boot_id text COLLATE "C",
  forget_boot      double precision,
  window_s         double precision NOT NULL,
  approval_id      text,
  payload          bytea,
  outcome          bytea,
  note             text NOT NULL DEFAULT '',
  attendant        text,
  PRIMARY KEY (tenant, principal, tool, key),
  UNIQUE (call_id, tenant)                      -- the tenant last, or a new table is looked up by it alone
);

CREATE INDEX operation_open ON operation (updated_at, call_id)
  WHERE state IN ('claimed', 'dispatched', 'unknown');
CREATE INDEX operation_kept ON operation (finished_boot_id, forget_boot)
  WHERE payload IS NOT NULL AND finished_boot_id IS NOT NULL;
CREATE INDEX operation_awaited ON operation (tenant, principal, tool, fingerprint, created_at)
  WHERE attendant IS NOT NULL;

CREATE TABLE approval (
  tenant           text COLLATE "C" NOT NULL,
  id               text COLLATE "C" NOT NULL,
  principal        text COLLATE "C" NOT NULL,
  tool             text COLLATE "C" NOT NULL,
  key              text COLLATE "C" NOT NULL,
  round            bigint NOT NULL,
  call_id          text COLLATE "C" NOT NULL,
  fingerprint      text COLLATE "C" NOT NULL,
  contract_digest  text NOT NULL,
  need             text NOT NULL,
  answer           text COLLATE "C" NOT NULL,
  packet           bytea NOT NULL,
  created_at       double precision NOT NULL,
  expires_at       double precision NOT NULL,
  used_nonce       text,
  task             text NOT NULL DEFAULT '',
  level            bigint NOT NULL DEFAULT 0,
  release          text COLLATE "C" NOT NULL DEFAULT 'caller',
  tries            bigint NOT NULL DEFAULT 0,
  release_at       double precision NOT NULL DEFAULT 0,
  said             text NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, principal, tool, key, round)
);

CREATE INDEX approval_pending ON approval (tenant, principal, expires_at) WHERE answer = 'PENDING';
CREATE INDEX approval_waiting ON approval (expires_at) WHERE answer = 'PENDING';
CREATE INDEX approval_releasable ON approval (release_at)
  WHERE answer = 'APPROVED' AND release = 'gateway' AND used_nonce IS NULL;

CREATE TABLE vote (
  tenant       text COLLATE "C" NOT NULL,
  approval_id  text COLLATE "C" NOT NULL,
  person       text COLLATE "C" NOT NULL,
  role         text NOT NULL,
  approve      bigint NOT NULL,
  note         text NOT NULL,
  at           double precision NOT NULL,
  via          text NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, approval_id, person)
);

CREATE TABLE rate (
  tenant  text COLLATE "C" NOT NULL,
  bucket  text COLLATE "C" NOT NULL,
  tat     double precision NOT NULL,
  PRIMARY KEY (tenant, bucket)
);

CREATE TABLE budget (
  tenant            text COLLATE "C" NOT NULL,
  bucket            text COLLATE "C" NOT NULL,
  per               text COLLATE "C" NOT NULL,
  kind              text COLLATE "C" NOT NULL,
  subject           text COLLATE "C" NOT NULL,
  window_s          double precision,
  starts_at         double precision NOT NULL,
  calls_used        bigint NOT NULL,
  cost_used         bigint NOT NULL,
  wall_ms_used      bigint NOT NULL,
  retries_used      bigint NOT NULL,
  calls_reserved    bigint NOT NULL,
  cost_reserved     bigint NOT NULL,
  wall_ms_reserved  bigint NOT NULL,
  retries_reserved  bigint NOT NULL,
  PRIMARY KEY (tenant, bucket)
);

CREATE TABLE reservation (
  tenant      text COLLATE "C" NOT NULL,
  call_id     text COLLATE "C" NOT NULL,
  bucket      text COLLATE "C" NOT NULL,
  calls       bigint NOT NULL,
  cost        bigint NOT NULL,
  wall_ms     bigint NOT NULL,
  retries     bigint NOT NULL,
  open        bigint NOT NULL,
  owner       text COLLATE "C" NOT NULL,
  boot_id     text NOT NULL,
  lease_boot  double precision NOT NULL,
  at          double precision NOT NULL,
  PRIMARY KEY (tenant, call_id, bucket)
);

CREATE INDEX reservation_of_reads ON reservation (owner) WHERE owner <> '';

CREATE TABLE halt (
  tenant     text COLLATE "C" NOT NULL,
  target     text COLLATE "C" NOT NULL,
  halted_by  text NOT NULL,
  note       text NOT NULL,
  at         double precision NOT NULL,
  PRIMARY KEY (tenant, target)
);

CREATE TABLE cancel (
  tenant        text COLLATE "C" NOT NULL,
  call_id       text COLLATE "C" NOT NULL,
  cancelled_by  text NOT NULL,
  at            double precision NOT NULL,
  PRIMARY KEY (tenant, call_id)
);

CREATE TABLE bundle (
  tenant   text COLLATE "C" NOT NULL,
  version  text COLLATE "C" NOT NULL,
  content  text NOT NULL,
  PRIMARY KEY (tenant, version)
);

CREATE TABLE promotion (
  tenant       text COLLATE "C" NOT NULL,
  number       bigint NOT NULL,
  version      text COLLATE "C" NOT NULL,
  promoted_by  text NOT NULL,
  note         text NOT NULL,
  at           double precision NOT NULL,
  ended_by     text,
  PRIMARY KEY (tenant, number)
);

CREATE TABLE tenant_key (
  tenant   text COLLATE "C" NOT NULL,
  wrapped  bytea NOT NULL,
  PRIMARY KEY (tenant)
);

CREATE TABLE token (
  tenant      text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  upstream    text COLLATE "C" NOT NULL,
  sealed      bytea NOT NULL,
  at          double precision NOT NULL,
  busy_until  double precision NOT NULL,
  PRIMARY KEY (tenant, principal, upstream)
);
