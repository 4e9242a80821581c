package vintage

import "os"

// stride is how many bytes a build writes before it waits until they are on the disk. What is written to a file
// otherwise gathers in memory and goes to the disk by the gigabyte, and every other write of the machine waits behind
// it: those of a service that answers meanwhile among them.
const stride = 1 << 20

// paced writes to a file from a place on, at the pace of the disk.
type paced struct {
	file  *os.File
	at    int64 // where the next byte goes
	ahead int64 // bytes that may not be on the disk yet
}

// Write is io.Writer's.
func (p *paced) Write(data []byte) (n int, err error) {
	n, err = p.file.WriteAt(data, p.at)
	p.at, p.ahead = p.at+int64(n), p.ahead+int64(n)
	if err == nil && p.ahead >= stride {
		await(p.file, p.at-p.ahead, p.ahead)
		p.ahead = 0
	}
	return n, err
}
