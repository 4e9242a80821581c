//go:build !unix

package listener

// maxDescriptors returns false: on this system the limit is not known, and the caps of connections stay as configured.
func maxDescriptors() (int, bool) { return 0, false }
