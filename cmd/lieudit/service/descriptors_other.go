//go:build !unix

package service

// maxDescriptors is not known.
func maxDescriptors() (int, bool) { return 0, false }
