//go:build unix

package service

import "golang.org/x/sys/unix"

// maxDescriptors is how many file descriptors the process may have. Package os has raised the soft limit to the hard one
// at start. A limit above 2³⁰ counts as 2³⁰.
func maxDescriptors() (int, bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int(min(uint64(limit.Cur), 1<<30)), true
}
