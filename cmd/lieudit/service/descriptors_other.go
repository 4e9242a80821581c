//go:build !unix

package service

// maxDescriptors is not known on this system: the caps of connections stay as configured.
func maxDescriptors() (int, bool) { return 0, false }
