"""The wall that a process puts on itself before it runs others' code: what that code can reach afterwards.

Landlock closes files, signals, other processes' memory and abstract sockets; a filter of system calls (libseccomp)
closes the network, sockets that lie in the file system, other processes' keys and limits, and a file's mode, owner and
times, which Landlock knows nothing of. Both need neither root nor user namespaces, hold inside containers, can be put
on by a process that was forked warm, and are inherited by all that it starts. bubblewrap would need an `exec`, a
package and user namespaces, and is closed by what many containers and distributions set.
"""
