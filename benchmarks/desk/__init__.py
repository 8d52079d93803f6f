"""The desk beside a database of a million jobs and a worker at full speed."""
