"""When alerts open, end and are sent, and the text of notices: decisions without a clock or a database."""
