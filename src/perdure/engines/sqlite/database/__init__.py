"""The open file: driver, schema, transactions, rows."""
