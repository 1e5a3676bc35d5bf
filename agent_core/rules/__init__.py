"""What is said of a text, a reply or a call by itself: promises, joints, finish reasons, loops. No rule here knows a turn."""
