package measure

import (
	"errors"
	"fmt"
	"os"
)

// ResidentBytesOf reads the memory of another process that is in RAM. It needs Linux; 0 elsewhere.
func ResidentBytesOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize()), err
}
