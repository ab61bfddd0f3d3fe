"""Studies of workflows and their claims."""
