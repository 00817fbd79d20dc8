-- What upstreams let people do in their name: sealed under the tenant's key.

CREATE TABLE token (
  tenant      TEXT NOT NULL,                    -- '*': the gateway's own
  principal   TEXT NOT NULL,
  upstream    TEXT NOT NULL,
  sealed      BLOB NOT NULL,
  at          REAL NOT NULL,                    -- when it was obtained: the newer one stays
  busy_until  REAL NOT NULL,                    -- a process is renewing it until then
  PRIMARY KEY (tenant, principal, upstream)
) STRICT;
