package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	lowestNiceness  = 19
	idleDiskClass   = 3 << 13 // ioprio_set(2): IOPRIO_CLASS_IDLE, the disk when nobody else wants it
	ioprioWhoThread = 1       // ioprio_set(2): IOPRIO_WHO_PROCESS, which is one thread
)

// lowerPriority lets every other process go first, at the processor and at the disk. It sets each thread that runs;
// threads started later inherit it. Where the system refuses, nothing changes.
func lowerPriority() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			unix.Setpriority(unix.PRIO_PROCESS, id, lowestNiceness)
			unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoThread, uintptr(id), idleDiskClass)
		}
	}
}
