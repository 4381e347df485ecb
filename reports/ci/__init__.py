"""What CI services show beside a change: a summary in Markdown, annotations on lines of files."""
