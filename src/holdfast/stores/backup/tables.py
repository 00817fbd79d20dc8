"""What is in a store? Every table, in an order in which each can be loaded."""

TABLES = (
    "store_life",
    "tenant_key",
    "operation",
    "approval",
    "vote",
    "rate",
    "budget",
    "reservation",
    "halt",
    "cancel",
    "token",
    "bundle",
    "promotion",
    "record",
    "chain_head",
    "tree_leaf",
    "tree_node",
    "tree_checkpoint",
    "tree_pruned",
)
