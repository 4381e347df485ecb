"""Cases on other hosts: over ssh, under Slurm, in containers. One program on each host, one pipe to it."""
