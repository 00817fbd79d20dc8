"""The life of a call, seen from outside: proposals in, observations out."""
