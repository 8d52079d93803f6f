"""From a session of SQLAlchemy, or a connection of Django, to the driver's own connection.

SQLAlchemy is asked to run a statement first: it then knows that its transaction has begun, and its commit will commit.
Django keeps the driver's own autocommit in step with its atomic blocks, so that the driver can be asked.
"""

from __future__ import annotations

from typing import Any, Final

_TOUCH: Final = "SELECT 1"


async def of_sqlalchemy_connection(connection: Any) -> Any:
    """The driver's connection behind a Connection of SQLAlchemy, its transaction begun."""
    connection.exec_driver_sql(_TOUCH).close()
    return connection.connection.driver_connection


async def of_sqlalchemy_session(session: Any) -> Any:
    """The driver's connection behind a Session of SQLAlchemy, its transaction begun."""
    return await of_sqlalchemy_connection(session.connection())


async def of_async_sqlalchemy_connection(connection: Any) -> Any:
    """The driver's connection behind an AsyncConnection of SQLAlchemy, its transaction begun."""
    await connection.exec_driver_sql(_TOUCH)
    return (await connection.get_raw_connection()).driver_connection


async def of_async_sqlalchemy_session(session: Any) -> Any:
    """The driver's connection behind an AsyncSession of SQLAlchemy, its transaction begun."""
    return await of_async_sqlalchemy_connection(await session.connection())


async def of_django(connection: Any) -> Any:
    """The driver's connection behind `django.db.connection`, opened if it was not."""
    connection.validate_no_broken_transaction()
    connection.ensure_connection()
    return connection.connection
