"""What a child process answers: by a pipe, as plain bytes, and what its silence means."""
