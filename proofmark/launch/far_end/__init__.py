"""The far end: the one program that runs on each host, alive as long as the pipe to it.

It is sent as source before anything else is there, so its modules need the standard library and one another only.
"""
