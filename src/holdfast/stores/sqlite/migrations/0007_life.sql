-- How often this store began to live: once when it was made, and once more whenever a backup was put back. What
-- happened between a backup and its return is not known to it until `recovered_at`.

CREATE TABLE store_life (
  tenant        TEXT NOT NULL,                  -- '*'
  number        INTEGER NOT NULL,
  id            TEXT NOT NULL,
  since         REAL NOT NULL,
  why           TEXT NOT NULL,
  recovered_at  REAL,
  PRIMARY KEY (tenant, number)
) STRICT;

INSERT INTO store_life
SELECT '*', 1, lower(hex(randomblob(8))), (julianday('now') - 2440587.5) * 86400.0, 'created', NULL;
