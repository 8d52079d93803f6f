"""What every surface offers: views, audited commands, and the check-up."""
