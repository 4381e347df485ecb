"""Where an engine's process is, a group of this machine's or a container: started, stopped, ended."""
