-- Who let go last of what a write had locked: a look that is older than that must be taken again.
CREATE TABLE effect_past (
  tenant    TEXT NOT NULL,
  resource  TEXT NOT NULL,                      -- as in effect_lock
  kind      TEXT NOT NULL,
  whole     INTEGER NOT NULL,
  nonce     TEXT NOT NULL,                      -- of the attempt
  at        REAL NOT NULL,
  place     INTEGER NOT NULL,                   -- among those of its kind
  PRIMARY KEY (tenant, resource)
) STRICT;
CREATE INDEX effect_past_kind ON effect_past (tenant, kind, place, nonce);
CREATE INDEX effect_past_whole ON effect_past (tenant, kind) WHERE whole = 1;
CREATE INDEX effect_past_at ON effect_past (at);
