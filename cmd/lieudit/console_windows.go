package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes lets a console understand the escape sequences of progress bars: older ones do so only when asked. A file that is
// no console stays as it is.
func enableEscapes(f *os.File) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil {
		windows.SetConsoleMode(windows.Handle(f.Fd()), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) // an old system shows the signs
	}
}
