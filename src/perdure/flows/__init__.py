"""What a handler calls on its context to store its progress, and to wait without occupying a worker.

When a job comes back, its handler runs again from the beginning, and stored steps return at once. `journal` is one
attempt's view of its job's steps, `recorder` stores the steps of all attempts of a worker, `park` ends an attempt that
waits. The other modules are what handlers call: steps, polling, waiting, children.
"""
