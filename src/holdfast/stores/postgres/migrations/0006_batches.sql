-- Many claims, outcomes and notes of one tenant in one trip and one commit, when all of them are as hoped; else nothing
-- is written, false is said, and fewer are tried at once, at last each the long way. The texts are those of stores/sql.

-- `halt_names` is null where nothing begins; `judged_under` are the policies that calls were judged by.
CREATE FUNCTION batch(
  for_tenant text, durable boolean, halt_names text[], judged_under text[],
  -- what is claimed
  principals text[], tools text[], keys text[], call_ids text[], versions text[], contract_digests text[],
  fingerprints text[], nonces text[], owners text[], key_sources text[], trace_ids text[], nows double precision[],
  boot_ids text[], deadline_boots double precision[], lease_boots double precision[], windows_s double precision[],
  approval_ids text[], payloads bytea[], attendants text[],
  -- what has ended
  end_states text[], end_outcomes bytea[], end_notes text[], end_nows double precision[],
  end_ats double precision[], end_boot_ids text[], end_boots double precision[], end_principals text[],
  end_tools text[], end_keys text[], end_epochs bigint[], end_nonces text[],
  -- what is recorded of it
  by_writer text, first_seq bigint, first_prev bytea, of_call_ids text[], kinds text[], ats double precision[],
  bodies text[], hashes bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  in_force text;
  claimed bigint;
  e record;
BEGIN
  PERFORM set_config('holdfast.tenant', for_tenant, true);
  IF NOT durable THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  IF cardinality(hashes) > 1 THEN  -- nobody waits long for whom a neighbour waits
    PERFORM set_config('lock_timeout', '100ms', true);
  END IF;
  IF halt_names IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock_shared(7522750128418024293);
    IF EXISTS (SELECT FROM halt WHERE tenant = '*' AND target = ANY (halt_names)) THEN
      RETURN false;
    END IF;
    IF cardinality(judged_under) > 0 THEN
      in_force := (
        SELECT version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 1);
      IF EXISTS (SELECT FROM unnest(judged_under) AS judged WHERE judged IS DISTINCT FROM in_force) THEN
        RETURN false;
      END IF;
    END IF;
  END IF;
  IF cardinality(keys) > 0 THEN
    INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state,
      epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, deadline_boot, lease_boot,
      window_s, approval_id, payload, attendant)
    SELECT for_tenant, c.principal, c.tool, c.key, c.call_id, c.version, c.contract_digest, c.fingerprint,
      'dispatched', 1, c.nonce, c.owner, c.key_source, c.trace_id, c.now, c.now, c.boot_id, c.deadline_boot,
      c.lease_boot, c.window_s, c.approval_id, c.payload, c.attendant
    FROM unnest(principals, tools, keys, call_ids, versions, contract_digests, fingerprints, nonces, owners,
      key_sources, trace_ids, nows, boot_ids, deadline_boots, lease_boots, windows_s, approval_ids, payloads,
      attendants) AS c (principal, tool, key, call_id, version, contract_digest, fingerprint, nonce, owner,
      key_source, trace_id, now, boot_id, deadline_boot, lease_boot, window_s, approval_id, payload, attendant)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    IF claimed < cardinality(keys) THEN
      RAISE SQLSTATE 'HF001';
    END IF;
  END IF;
  -- One by one, for a new table might be read from end to end in a join.
  FOR e IN
    SELECT * FROM unnest(end_states, end_outcomes, end_notes, end_nows, end_ats, end_boot_ids, end_boots,
      end_principals, end_tools, end_keys, end_epochs, end_nonces)
      AS u (state, outcome, note, now, ended_at, boot_id, boot, principal, tool, key, epoch, nonce)
  LOOP
    UPDATE operation SET state = e.state, outcome = e.outcome, note = e.note, updated_at = e.now,
      finished_at = e.ended_at, finished_boot_id = e.boot_id, forget_boot = e.boot + operation.window_s
    WHERE operation.tenant = for_tenant AND operation.principal = e.principal AND operation.tool = e.tool
      AND operation.key = e.key AND operation.epoch = e.epoch AND operation.nonce = e.nonce
      AND operation.state IN ('claimed', 'dispatched', 'unknown');
    IF NOT FOUND THEN
      RAISE SQLSTATE 'HF001';
    END IF;
  END LOOP;
  INSERT INTO record
  SELECT for_tenant, by_writer, first_seq + r.number - 1, r.call_id, r.kind, r.at, r.body,
    coalesce(hashes[r.number - 1], first_prev), r.hash
  FROM unnest(of_call_ids, kinds, ats, bodies, hashes) WITH ORDINALITY
    AS r (call_id, kind, at, body, hash, number);
  RETURN true;
EXCEPTION
  WHEN SQLSTATE 'HF001' OR lock_not_available THEN
    RETURN false;
END $$;
