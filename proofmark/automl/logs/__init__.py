"""What a search and its trials write: what their events must hold, and what a trial's own come to."""
