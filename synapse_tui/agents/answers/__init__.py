"""What an agent wrote in a turn, without the frame around it."""
