"""Starting a job on hosts and ending it: here, over ssh, under Slurm, in containers."""
