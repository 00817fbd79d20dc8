-- Who waits for the answer of an operation whose client knows no key: a worker, '' once that client left without
-- the last word, NULL where nobody has to find it by its arguments.

ALTER TABLE operation ADD COLUMN attendant TEXT;

CREATE INDEX operation_awaited ON operation (tenant, principal, tool, fingerprint, created_at)
  WHERE attendant IS NOT NULL;
