-- What a sweep looks for is found without reading what is merely running, however much that is: whose claims there
-- are, and of each owner those whose lease is over. Those of unknown end are few, and have an index of their own.

DROP INDEX operation_open;

CREATE INDEX operation_running ON operation (boot_id, owner, lease_boot)
  WHERE state IN ('claimed', 'dispatched');

CREATE INDEX operation_unknown ON operation (updated_at, call_id) WHERE state = 'unknown';

CREATE INDEX budget_over ON budget (starts_at + 2 * window_s) WHERE window_s IS NOT NULL;
