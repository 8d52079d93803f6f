"""The context of a sync handler: at run time the same as any other, which knows that its handler blocks.

Type checkers see it as the stub beside this file says: each call gives its value, and nothing is awaited.
"""

from __future__ import annotations

from perdure.worker.attempt.context.context import Context

SyncContext = Context
