package places

import "slices"

// File is the result for one file. Its JSON is that of the command.
type File struct {
	Name   string   `json:"file"`
	Rows   int      `json:"rows"`
	First  Attempt  `json:"first"`            // with no flag but the referential
	Second *Attempt `json:"second,omitempty"` // with the flags that the first refusal proposed; nil: not needed, or none proposed

	Columns Columns   `json:"columns"`
	Notes   []string  `json:"notes"` // the command's notes about the file
	Mended  []Finding `json:"mended"`
	Doubts  []Finding `json:"doubts"`

	// The stored sites; zero if the file was refused.
	Alerts     map[string]int `json:"alerts"` // by code
	Sites      int            `json:"sites"`
	Positioned int            `json:"positioned"`
	Named      int            `json:"named"`
	Placed     int            `json:"placed"`  // by their address
	Outside    []Outside      `json:"outside"` // outside their commune without an alert about it, the farthest first
	RoundTrips []RoundTrip    `json:"round_trips"`

	Seconds float64 `json:"read_seconds"` // of the reader alone
	PeakKB  int     `json:"read_peak_kb"` // of a process that only reads; 0: unknown
}

// Attempt is one import of a file.
type Attempt struct {
	Flags    []string `json:"flags,omitempty"`
	Imported bool     `json:"imported"`
	Reason   string   `json:"reason,omitempty"` // the first sentence of the refusal
}

// Columns counts what the columns of a file become.
type Columns struct {
	Fields     int `json:"fields"`
	Properties int `json:"properties"`
	LeftOut    int `json:"left_out"`
}

// Finding is a kind of fix or doubt and how often the command reported it.
type Finding struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// Outside is a site outside the commune of its address.
type Outside struct {
	ExternalID string  `json:"external_id"`
	Commune    string  `json:"commune"` // the nearest commune that the address can mean
	Kilometres float64 `json:"km"`      // from its bounds
	Placed     bool    `json:"placed"`  // by its address
}

// RoundTrip is an export of the stored sites, and the changes by its import. An empty text means no difference.
type RoundTrip struct {
	Form      string `json:"form"`
	Again     string `json:"again"`     // after an import into the original referential
	Elsewhere string `json:"elsewhere"` // after an import into another account
}

// isImported reports whether one of the tries succeeded.
func (f *File) isImported() bool { return f.First.Imported || f.Second != nil && f.Second.Imported }

// CountMended returns how many values were fixed.
func (f *File) CountMended() int { return sumFindings(f.Mended) }

// CountDoubts returns how many values are doubtful.
func (f *File) CountDoubts() int { return sumFindings(f.Doubts) }

func sumFindings(all []Finding) (sum int) {
	for _, f := range all {
		sum += f.Count
	}
	return sum
}

// HasSameRoundTrips reports whether every export of the file brought the same sites back.
func (f *File) HasSameRoundTrips() bool {
	return len(f.RoundTrips) > 0 && !slices.ContainsFunc(f.RoundTrips, func(t RoundTrip) bool { return t.Again+t.Elsewhere != "" })
}

// Totals are sums over files.
type Totals struct {
	Files, Rows, First, Second, Fields, Properties, LeftOut int // First and Second: files imported at that try
	Mended, Doubts, Alerts                                  int
	Sites, Positioned, Named, Placed, Outside, Same         int // Same: files whose round trips are identical
	Seconds                                                 float64
	PeakKB                                                  int // of one file
}

// Add adds a file.
func (t *Totals) Add(f File) {
	t.Files++
	t.Rows += f.Rows
	switch { // a refused file counts for neither
	case f.First.Imported:
		t.First++
	case f.isImported():
		t.Second++
	}
	t.Fields, t.Properties, t.LeftOut = t.Fields+f.Columns.Fields, t.Properties+f.Columns.Properties, t.LeftOut+f.Columns.LeftOut
	t.Mended, t.Doubts = t.Mended+f.CountMended(), t.Doubts+f.CountDoubts()
	for _, n := range f.Alerts {
		t.Alerts += n
	}
	t.Sites, t.Positioned, t.Named, t.Placed = t.Sites+f.Sites, t.Positioned+f.Positioned, t.Named+f.Named, t.Placed+f.Placed
	t.Outside += len(f.Outside)
	if f.HasSameRoundTrips() {
		t.Same++
	}
	t.Seconds, t.PeakKB = t.Seconds+f.Seconds, max(t.PeakKB, f.PeakKB)
}
