"""What happens at a time: reminders, prompts of the configuration, and messages of the operator."""
