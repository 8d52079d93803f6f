"""What operators change: jobs, schedules, holds, approvals, access tokens."""
