-- The second lock between tenants. Every transaction says for whom it works (`SET LOCAL holdfast.tenant`): it sees
-- and writes that tenant's rows and no others, '*' is the gateway's own housekeeping and sees all, and a
-- transaction that says nothing sees nothing. Forced, because gateways own these tables. Superusers are exempt.

CREATE FUNCTION serves(row_tenant text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN current_setting('holdfast.tenant', true) IN (row_tenant, '*')
  AND current_setting('holdfast.tenant', true) <> '';

-- For tables where '*' rows are what all tenants share: halts, policies, limits, the tree without its leaves.
CREATE FUNCTION shares(row_tenant text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN (current_setting('holdfast.tenant', true) IN (row_tenant, '*') OR row_tenant = '*')
  AND current_setting('holdfast.tenant', true) <> '';

DO $$
DECLARE
  shared CONSTANT text[] := ARRAY['halt', 'bundle', 'promotion', 'rate', 'token', 'worker', 'store_life',
    'chain_head', 'tree_node', 'tree_checkpoint'];
  name text;
BEGIN
  FOR name IN
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = 'holdfast' AND column_name = 'tenant'
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON %I USING (%s(tenant)) WITH CHECK (%2$s(tenant))',
      name, CASE WHEN name = ANY (shared) THEN 'shares' ELSE 'serves' END
    );
  END LOOP;
END $$;
