package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	lowestNiceness  = 19
	idleDiskClass   = 3 << 13 // ioprio_set(2): IOPRIO_CLASS_IDLE, the disk only while no other process uses it
	ioprioWhoThread = 1       // ioprio_set(2): IOPRIO_WHO_PROCESS, which is one thread
)

// lowerPriority gives every other process precedence at the processor and at the disk. Linux keeps both priorities per
// thread, so it sets those of each running thread; threads that start later inherit them. It drops errors: if the system
// refuses, the work continues at its old priority.
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
