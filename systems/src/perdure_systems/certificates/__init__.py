"""Certificates: jobs that wait for a CSR and for approval, and the twelve loops that look after them."""
