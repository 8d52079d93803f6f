"""What an audit measures and makes: timings, scores, pictures, the report."""
