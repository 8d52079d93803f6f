"""What a handler calls on its context to keep what it has done, and to wait without holding a worker.

A handler is run again from its beginning whenever its job comes back; what is recorded answers at once. `journal` is
one attempt's view of its job's steps, `recorder` the way of all attempts of a worker to the store, `park` how an
attempt ends that waits. The rest is what handlers know: steps, polling, waiting.
"""
