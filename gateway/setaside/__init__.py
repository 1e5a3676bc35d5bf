"""What an earlier process left open and how it is taken up; and what cannot be gone on with is set aside, and told."""
