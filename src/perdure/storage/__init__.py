"""The port between perdure and its databases: narrow protocols, and the values that cross them.

An engine implements all of them on one object, `Store`. Every method is atomic: it happens wholly or not at all, and
when it returns its effect is durable. What every engine must do is stated in the docstrings here and tested once for
all engines in `tests/conformance`.
"""
