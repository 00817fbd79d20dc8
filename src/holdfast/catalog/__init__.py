"""Which tools exist here, in which versions, and on what terms?"""
