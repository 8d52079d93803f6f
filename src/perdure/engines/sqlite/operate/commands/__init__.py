"""What operators change, each with its entry in the audit trail."""
