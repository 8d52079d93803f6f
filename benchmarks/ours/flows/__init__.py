"""What parked jobs, steps, families and chains cost."""
