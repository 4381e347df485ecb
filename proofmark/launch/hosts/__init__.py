"""What is run once on a host before a job: installing what is required, describing what there is."""
