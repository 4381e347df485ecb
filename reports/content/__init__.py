"""What reports show, whatever their form."""
