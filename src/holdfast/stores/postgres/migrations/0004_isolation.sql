-- The second lock between tenants. Every transaction says for whom it works (`SET LOCAL holdfast.tenant`): it sees
-- and writes that tenant's rows and no others, '*' is the gateway's own housekeeping and sees all, and a
-- transaction that says nothing sees nothing. Forced, because gateways own these tables. Superusers are exempt.

CREATE FUNCTION serves(row_tenant text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN current_setting('holdfast.tenant', true) IN (row_tenant, '*')
  AND current_setting('holdfast.tenant', true) <> '';

-- For tables where '*' rows are what all tenants share: limits and chains, which their transactions write as well,
-- and halts, policies and the tree, which they only read.
CREATE FUNCTION shares(row_tenant text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN (current_setting('holdfast.tenant', true) IN (row_tenant, '*') OR row_tenant = '*')
  AND current_setting('holdfast.tenant', true) <> '';

DO $$
DECLARE
  written CONSTANT text[] := ARRAY['rate', 'token', 'chain_head'];
  read CONSTANT text[] := ARRAY['halt', 'bundle', 'promotion', 'worker', 'store_life', 'tree_node',
    'tree_checkpoint'];
  name text;
BEGIN
  FOR name IN
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = 'holdfast' AND column_name = 'tenant'
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      -- As a CASE, for the planner would take the bare condition to leave one row in hundreds.
      'CREATE POLICY tenant ON %I USING (CASE WHEN %s(tenant) THEN true ELSE false END) WITH CHECK (%2$s(tenant))',
      name, CASE WHEN name = ANY (written) THEN 'shares' ELSE 'serves' END
    );
    IF name = ANY (read) THEN
      EXECUTE format('CREATE POLICY common ON %I FOR SELECT USING (shares(tenant))', name);
    END IF;
  END LOOP;
END $$;
