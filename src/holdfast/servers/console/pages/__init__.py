"""One file for each page of the console; `site.py` says where they are."""
