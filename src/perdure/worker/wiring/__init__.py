"""The composition root: the one place that makes the parts of a worker and joins them."""
