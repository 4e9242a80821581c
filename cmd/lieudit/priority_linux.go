package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	lowestNiceness  = 19      // niceness
	idleDiskClass   = 3 << 13 // ioprio: the disk when nobody else wants it
	ioprioWhoThread = 1       // ioprio: of one thread
)

// lowerPriority lets every other process go first, at the processor and at the disk. Threads inherit it from the ones there are.
// It is a courtesy: where the system refuses, all goes on as it was.
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
