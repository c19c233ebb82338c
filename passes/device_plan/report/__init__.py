"""What planning decided and why, for people: plans, explanations, errors."""
