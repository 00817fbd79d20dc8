-- The usual case of a claim, an outcome and a note in one trip each. A shortcut writes only when everything is as
-- hoped; else it writes nothing and says so, and the long way decides. The texts are those of stores/sql.

CREATE FUNCTION for_whom(for_tenant text, durable boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('holdfast.tenant', for_tenant, true);
  IF NOT durable THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
END $$;

-- Whether a call may go on: nothing it falls under is halted, and it was judged by the policies in force. The lock
-- keeps both as they are until the transaction is over; each statement here sees what was committed before it.
CREATE FUNCTION unhindered(halt_names text[], judged boolean, judged_under text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7522750128418024293);
  IF EXISTS (SELECT FROM halt WHERE tenant = '*' AND target = ANY (halt_names)) THEN
    RETURN false;
  END IF;
  RETURN NOT judged OR judged_under IS NOT DISTINCT FROM (
    SELECT version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 1);
END $$;

CREATE FUNCTION note(
  for_tenant text, durable boolean,
  writer text, seq bigint, call_id text, kind text, at double precision, body text, prev bytea, hash bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM for_whom(for_tenant, durable);
  INSERT INTO record VALUES (for_tenant, writer, seq, call_id, kind, at, body, prev, hash);
  RETURN true;
END $$;

CREATE FUNCTION intent(
  for_tenant text, durable boolean, halt_names text[], judged boolean, judged_under text,
  writer text, seq bigint, call_id text, kind text, at double precision, body text, prev bytea, hash bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM for_whom(for_tenant, durable);
  IF NOT unhindered(halt_names, judged, judged_under) THEN
    RETURN false;
  END IF;
  INSERT INTO record VALUES (for_tenant, writer, seq, call_id, kind, at, body, prev, hash);
  RETURN true;
END $$;

CREATE FUNCTION claim(
  for_tenant text, halt_names text[], judged boolean, judged_under text,
  principal text, tool text, key text, call_id text, version text, contract_digest text, fingerprint text,
  nonce text, owner text, key_source text, trace_id text, now double precision, boot_id text,
  deadline_boot double precision, lease_boot double precision, window_s double precision, approval_id text,
  payload bytea, attendant text,
  writer text, seq bigint, kind text, body text, prev bytea, hash bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM for_whom(for_tenant, true);
  IF NOT unhindered(halt_names, judged, judged_under) THEN
    RETURN false;
  END IF;
  INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state,
    epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, deadline_boot, lease_boot,
    window_s, approval_id, payload, attendant)
  VALUES (for_tenant, claim.principal, claim.tool, claim.key, claim.call_id, claim.version,
    claim.contract_digest, claim.fingerprint, 'dispatched', 1, claim.nonce, claim.owner, claim.key_source,
    claim.trace_id, claim.now, claim.now, claim.boot_id, claim.deadline_boot, claim.lease_boot, claim.window_s,
    claim.approval_id, claim.payload, claim.attendant)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO record VALUES (for_tenant, claim.writer, claim.seq, claim.call_id, claim.kind, claim.now,
    claim.body, claim.prev, claim.hash);
  RETURN true;
END $$;

CREATE FUNCTION finish(
  for_tenant text, new_state text, new_outcome bytea, new_note text, now double precision,
  ended_at double precision, ended_boot_id text, ended_boot double precision,
  by_principal text, by_tool text, by_key text, by_epoch bigint, by_nonce text,
  writer text, seq bigint, call_id text, kind text, body text, prev bytea, hash bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM for_whom(for_tenant, true);
  UPDATE operation SET state = new_state, outcome = new_outcome, note = new_note, updated_at = now,
    finished_at = ended_at, finished_boot_id = ended_boot_id, forget_boot = ended_boot + window_s
  WHERE tenant = for_tenant AND principal = by_principal AND tool = by_tool AND key = by_key
    AND epoch = by_epoch AND nonce = by_nonce AND state IN ('claimed', 'dispatched', 'unknown');
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO record VALUES (for_tenant, finish.writer, finish.seq, finish.call_id, finish.kind, finish.now,
    finish.body, finish.prev, finish.hash);
  RETURN true;
END $$;
