"""`holdfast wrap FILE`: the servers a client has, behind one gateway, in one command; PRO-4.

clients, servers, jsonc     read the client's file and keep every place in it
suspects, references        find secrets, and refer to them instead of copying them
upstreams, names            say the same in Holdfast's words
discover                    ask each server for its tools, and guess what they do
files, paste, applied       write our files, make the one entry, change the client's file and back
work, result, screen        the order of it all, what came of it, and how that is told
"""

from holdfast.cli.wrap.command import add

__all__ = ["add"]
