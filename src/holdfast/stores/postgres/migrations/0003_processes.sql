-- Who works on this database, and which life of it this is. Both belong to the whole gateway: tenant '*'.

CREATE TABLE worker (
  tenant   text COLLATE "C" NOT NULL,
  id       text COLLATE "C" NOT NULL,
  machine  text NOT NULL,
  since    double precision NOT NULL,           -- the server's time, here and below
  seen_at  double precision NOT NULL,           -- its last heartbeat
  PRIMARY KEY (tenant, id)
);

CREATE TABLE store_life (
  tenant        text COLLATE "C" NOT NULL,
  number        bigint NOT NULL,                -- goes up with every backup that was put back
  id            text NOT NULL,
  since         double precision NOT NULL,
  why           text NOT NULL,
  recovered_at  double precision,               -- when what happened since the backup was merged
  PRIMARY KEY (tenant, number)
);

INSERT INTO store_life
SELECT '*', 1, gen_random_uuid()::text, extract(epoch FROM clock_timestamp()), 'created', NULL;
