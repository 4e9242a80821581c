package connlimit

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnsent limits what the system keeps unsent for a connection. It limits no throughput, unlike a smaller send buffer: bytes on
// their way do not count.
func limitUnsent(c net.Conn, bytes int) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return // the connection is closed
	}
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) })
}
