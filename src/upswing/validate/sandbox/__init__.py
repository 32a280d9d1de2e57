"""What can code that a model wrote do to us? As little as this machine can be made to allow.

A process runs `upswing.validate.sandbox.run`, which shuts one door after the other behind itself and
then runs the code it was handed. It needs nothing but the standard library, so that it starts in a
few hundredths of a second, and it does not trust itself: whatever it reports is only compared,
outside, with what it cannot know.

| fence        | what it holds off                              | where                              |
|--------------|------------------------------------------------|------------------------------------|
| `limits`     | time, memory, file size, open files, processes | every POSIX system                 |
| `namespaces` | network, other processes, IPC; a small tmpfs   | Linux that allows user namespaces  |
| `root`       | seeing files of others, changing their mode    | the same from Linux 5.12           |
| `landlock`   | reading and writing files outside the folder   | Linux 5.13 and newer               |
| `seccomp`    | sockets, fork, exec, signals, ptrace, mounts   | Linux on x86-64 and arm64          |
| `hooks`      | the same by Python's audit hooks               | where one of the three above is not|

The last one is a fence for honest mistakes only: code that looks for a way around it finds one. On
Linux with the first five, code would need a hole in the kernel.
"""
