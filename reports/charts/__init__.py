"""Drawing: SVG, axes, lines, panels over time. Of records it knows the monitor's readings alone."""
