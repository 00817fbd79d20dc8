"""Does the ledger keep its promises, in memory and on disk?"""
