-- Who let go last of what a write had locked: a look that is older than that must be taken again.
CREATE TABLE effect_past (
  tenant    text COLLATE "C" NOT NULL,
  resource  text COLLATE "C" NOT NULL,            -- as in effect_lock
  kind      text COLLATE "C" NOT NULL,
  whole     bigint NOT NULL,
  nonce     text COLLATE "C" NOT NULL,            -- of the attempt
  at        double precision NOT NULL,
  place     bigint NOT NULL,                      -- among those of its kind
  PRIMARY KEY (tenant, resource)
);
CREATE INDEX effect_past_kind ON effect_past (tenant, kind, place, nonce);
CREATE INDEX effect_past_whole ON effect_past (tenant, kind) WHERE whole = 1;
CREATE INDEX effect_past_at ON effect_past (at);

ALTER TABLE effect_past ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON effect_past
  USING (CASE WHEN serves(tenant) THEN true ELSE false END) WITH CHECK (serves(tenant));
