"""What is known of each kind of agent: profile files, where they are found, and which are trusted."""
