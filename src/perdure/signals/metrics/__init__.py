"""Metrics for Prometheus: what a process counts, what the database knows of the cluster, and how both are written.

Each process exports what it has counted itself (`perdure_*`): sums over instances are right. What belongs to the
cluster (`perdure_cluster_*`) is read from the database where that is switched on, usually by the desk.
"""
