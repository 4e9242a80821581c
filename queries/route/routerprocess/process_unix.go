//go:build unix

package routerprocess

import (
	"os"
	"os/exec"
	"syscall"
)

// startInGroup makes a command start in a process group of its own, which killGroup ends with all its processes.
func startInGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// peakMemory is the most memory that an ended process had, in bytes.
func peakMemory(ended *os.ProcessState) int64 {
	if usage, ok := ended.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Maxrss) << 10 // Linux counts KiB
	}
	return 0
}
