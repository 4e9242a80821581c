package vintage

import "bytes"

// Signed says whether a file that begins so is a vintage, of this format or another.
func Signed(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
