"""The context of a sync handler: at run time the same class, which knows that its handler blocks.

The stub beside this file describes it for type checkers: each call returns its value, and nothing is awaited.
"""

from __future__ import annotations

from perdure.worker.attempt.context.context import Context

SyncContext = Context
