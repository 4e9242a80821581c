package measure

import "time"

// ProcessorTime is 0: it is not measured on Windows.
func ProcessorTime() time.Duration { return 0 }

// PeakMemory is 0: it is not measured on Windows.
func PeakMemory() float64 { return 0 }
