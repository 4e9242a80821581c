package ban

import "fmt"

// Fault is a reason to leave a row out.
type Fault uint8

const (
	Short    Fault = iota // fewer columns than the header
	NoCode                // no id, or no code of a commune
	NoName                // neither street nor locality
	Number                // a house number that is none, or above 9999
	Position              // no coordinates, or not in France
	Encoding              // not UTF-8, or with control characters
	Quoting               // a quote that never closes, or a line without end
	faults
)

func (f Fault) String() string {
	return [...]string{"too few columns", "no id or commune code", "no street name", "no plausible house number",
		"coordinates missing or out of France", "not UTF-8 text", "broken quotes or an endless line"}[f]
}

// Named is how many bad rows a report names, the first ones.
const Named = 20

// Bad is one row that was left out.
type Bad struct {
	File  string
	Line  int // the header is line 1
	Fault Fault
}

func (b Bad) String() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Fault) }

// Report counts what the readers given it have seen. The zero value is ready; one reader uses it at a time.
type Report struct {
	Good      int
	Synthetic int         // of the good ones, those that are invented
	Counts    [faults]int // by Fault
	First     []Bad
}

// SyntheticSource is what the source columns of invented rows say.
const SyntheticSource = "synthétique"

// Bad is how many rows were left out.
func (r *Report) Bad() (n int) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// Faults calls yield with each fault that occurred and how often.
func (r *Report) Faults(yield func(Fault, int) bool) {
	for f, n := range r.Counts {
		if n > 0 && !yield(Fault(f), n) {
			return
		}
	}
}

func (r *Report) add(b Bad) {
	r.Counts[b.Fault]++
	if len(r.First) < Named {
		r.First = append(r.First, b)
	}
}
