"""What starts, watches and ends the programs of one private sluice.

Used by conf/quickstart and by the tests. Standard library only.
"""
