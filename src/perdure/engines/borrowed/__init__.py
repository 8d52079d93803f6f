"""Connections of the caller: perdure stores jobs in a transaction that the caller began and will end.

`recognise` identifies a connection by the names of its classes, so that it imports no library that the caller
lacks. A session of SQLAlchemy or a connection of Django is unwrapped to the driver's own connection, and each driver
has one small class that runs the statements of the engine's own plan for inserting jobs.
"""
