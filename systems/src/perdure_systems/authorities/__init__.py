"""Certificates from slow authorities: DigiCert, Sectigo, Entrust and GlobalSign."""
