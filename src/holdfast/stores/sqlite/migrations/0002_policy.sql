-- Bundles of policies and their promotions; the newest promotion that nobody took back is in force.

CREATE TABLE bundle (
  tenant   TEXT NOT NULL,                       -- '*': the whole gateway
  version  TEXT NOT NULL,
  content  TEXT NOT NULL,
  PRIMARY KEY (tenant, version)
) STRICT;

CREATE TABLE promotion (
  tenant       TEXT NOT NULL,
  number       INTEGER NOT NULL,
  version      TEXT NOT NULL,
  promoted_by  TEXT NOT NULL,
  note         TEXT NOT NULL,
  at           REAL NOT NULL,
  ended_by     TEXT,                            -- who rolled it back
  PRIMARY KEY (tenant, number)
) STRICT;
