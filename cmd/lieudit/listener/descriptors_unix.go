//go:build unix

package listener

import "golang.org/x/sys/unix"

// maxDescriptors returns how many file descriptors the process may have, and whether that is known. It is the soft limit,
// which package os raises to the hard one when the process starts. A limit above 2³⁰ counts as 2³⁰, so that sums fit.
func maxDescriptors() (int, bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int(min(uint64(limit.Cur), 1<<30)), true
}
