"""An inference case's processes, on this machine or on a host: the case's own, its monitor, and the agent over both."""
