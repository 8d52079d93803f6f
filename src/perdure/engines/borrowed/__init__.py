"""Connections that belong to the caller: how jobs become part of a transaction that somebody else began and will end.

`recognise` tells what a connection is by the names of its classes, so that no library is imported which the caller has
not. A session of SQLAlchemy or a connection of Django is unwrapped to the driver's own connection, and each driver has
one small class that runs a statement on it. What is run is the engine's own plan for inserting jobs.
"""
