-- Budgets, and what approvals need beside their answer: escalation, release, tasks.

CREATE TABLE budget (
  tenant            TEXT NOT NULL,
  bucket            TEXT NOT NULL,
  per               TEXT NOT NULL,
  kind              TEXT NOT NULL,
  subject           TEXT NOT NULL,
  window_s          REAL,                       -- NULL: it never starts anew
  starts_at         REAL NOT NULL,
  calls_used        INTEGER NOT NULL,
  cost_used         INTEGER NOT NULL,           -- in millionths
  wall_ms_used      INTEGER NOT NULL,
  retries_used      INTEGER NOT NULL,
  calls_reserved    INTEGER NOT NULL,
  cost_reserved     INTEGER NOT NULL,
  wall_ms_reserved  INTEGER NOT NULL,
  retries_reserved  INTEGER NOT NULL,
  PRIMARY KEY (tenant, bucket)
) STRICT;

-- What an operation holds of a bucket until its outcome is known. The sum over `open` rows is the bucket's
-- `reserved`, always: both change in one transaction.
CREATE TABLE reservation (
  tenant      TEXT NOT NULL,
  call_id     TEXT NOT NULL,
  bucket      TEXT NOT NULL,
  calls       INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  wall_ms     INTEGER NOT NULL,
  retries     INTEGER NOT NULL,
  open        INTEGER NOT NULL,                 -- 0: given back, and kept in case its effect shows up after all
  owner       TEXT NOT NULL,                    -- of a read, which has no operation to be found by; else ''
  boot_id     TEXT NOT NULL,
  lease_boot  REAL NOT NULL,
  at          REAL NOT NULL,
  PRIMARY KEY (tenant, call_id, bucket)
) STRICT;

CREATE INDEX reservation_of_reads ON reservation (owner) WHERE owner <> '';

ALTER TABLE approval ADD COLUMN task TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN level INTEGER NOT NULL DEFAULT 0;          -- how often it was escalated
ALTER TABLE approval ADD COLUMN release TEXT NOT NULL DEFAULT 'caller';
ALTER TABLE approval ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;          -- releases by the gateway
ALTER TABLE approval ADD COLUMN release_at REAL NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN said TEXT NOT NULL DEFAULT '';             -- why a release came to nothing

CREATE INDEX approval_waiting ON approval (expires_at) WHERE answer = 'PENDING';
CREATE INDEX approval_releasable ON approval (release_at)
  WHERE answer = 'APPROVED' AND release = 'gateway' AND used_nonce IS NULL;

ALTER TABLE vote ADD COLUMN via TEXT NOT NULL DEFAULT '';                  -- the role that stood in for `role`
