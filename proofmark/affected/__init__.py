"""What a change can affect: from a revision to files, from files to cases. Git is asked in one module alone."""
