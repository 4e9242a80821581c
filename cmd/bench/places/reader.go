package places

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"lieudit/http/sitefile"
)

// ReadAndMeasure reads a file of sites as an import does, and prints the seconds that it took and the peak memory of this process, in kB: two
// lines, which measureReader parses. An unreadable file is not an error: refusing it takes time too.
func ReadAndMeasure(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	began := time.Now()
	_, refused := sitefile.Read(file, info.Size(), path, sitefile.Options{})
	took := time.Since(began)
	if pathError := new(os.PathError); errors.As(refused, &pathError) {
		return refused
	}
	_, err = fmt.Fprintf(out, "seconds %.3f\npeak %s\n", took.Seconds(), peakMemory())
	return err
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory returns the peak memory of this process, in kB. Outside Linux it is 0.
func peakMemory() string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "0"
	}
	if found := peakLine.FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return "0"
}
