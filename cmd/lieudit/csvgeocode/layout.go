package csvgeocode

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"lieudit/http/csvfile"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// layout is which columns of a file a run reads, and the names of those that it adds.
type layout struct {
	named          []int                    // columns that the job names, in its order; nil if they are detected
	found          map[mapping.Field][]int  // detected columns; after the first those that a row uses if it is empty
	witnesses      map[int]mapping.Evidence // how the columns in found were recognized
	postcodeColumn int                      // of a filter; -1: none
	cityCodeColumn int                      // of a filter; -1: none
	prefix         string                   // of the names of the result's columns
}

// Layout describes what a run reads from a file and what it writes. The JSON keys are part of the command's output.
type Layout struct {
	Encoding  string   `json:"codage"`     // one of record.Encodings()
	Separator string   `json:"separateur"` // between fields
	Columns   []Column `json:"colonnes"`   // those that are read
	Prefix    string   `json:"prefixe"`    // of the result's columns
}

func (l Layout) isEqual(o Layout) bool {
	return l.Encoding == o.Encoding && l.Separator == o.Separator && l.Prefix == o.Prefix && slices.Equal(l.Columns, o.Columns)
}

// Column is a column that a run reads.
type Column struct {
	Name       string `json:"nom"`
	Use        string `json:"usage"`              // a mapping.Field of an address, AddressText, PostcodeFilter or CityCodeFilter
	IsByName   bool   `json:"par_nom"`            // recognized by its name or named by the job; false: by its content
	IsFallback bool   `json:"a_defaut,omitempty"` // read in the rows in which the other columns of this use are empty
}

// The uses of columns that a job names.
const (
	AddressText    = "adresse"
	PostcodeFilter = "filtre_code_postal"
	CityCodeFilter = "filtre_code_insee"
)

// ColumnError names a column that the file lacks, or a result column that it has already.
type ColumnError struct {
	Column         string
	AlreadyPresent bool     // true: the result would have two of this name
	Columns        []string // all columns of the file, if Column is missing
}

func (e *ColumnError) Error() string {
	if e.AlreadyPresent {
		return fmt.Sprintf("the file has a column %s already: choose another --prefix", e.Column)
	}
	return fmt.Sprintf("there is no column %q; the columns are: %s", e.Column, strings.Join(e.Columns, ", "))
}

// NoAddressError says that no column of a file was recognized as a part of an address.
type NoAddressError struct{ Columns []string }

func (e *NoAddressError) Error() string {
	return "no column holds an address, as far as names and contents tell; the columns are: " + strings.Join(e.Columns, ", ")
}

// resolveLayout finds the columns that the job names or, if it names none, those that hold an address. Its errors are *ColumnError
// and *NoAddressError.
func (h *header) resolveLayout(j Job) (err error) {
	if err := h.choosePrefix(j.Prefix); err != nil {
		return err
	}
	if h.postcodeColumn, err = h.columnIndex(j.Postcode); err != nil {
		return err
	}
	if h.cityCodeColumn, err = h.columnIndex(j.CityCode); err != nil {
		return err
	}
	for _, c := range j.Columns {
		i, err := h.columnIndex(c)
		if err != nil {
			return err
		}
		h.named = append(h.named, i)
	}
	if len(j.Columns) > 0 {
		return nil
	}
	return h.guessColumns(j)
}

// columnIndex returns the index of a column, -1 for the empty name. It ignores spaces around the name, but not the case of
// its letters. Of two columns with one name it is the first.
func (h *header) columnIndex(column string) (int, error) {
	if column == "" {
		return -1, nil
	}
	i := h.Column(column)
	if i < 0 {
		return -1, &ColumnError{Column: column, Columns: h.Names}
	}
	return i, nil
}

// DefaultPrefix begins the names of the result's columns. The whole names are those of the former national service.
const DefaultPrefix = "result_"

// choosePrefix takes the job's prefix for the result's columns, or finds the first that gives no name that the file has already:
// result_, result2_, result3_. An earlier result is unchanged.
func (h *header) choosePrefix(prefix string) error {
	if prefix != "" {
		h.prefix = prefix
		if i := h.indexOfResult(prefix); i >= 0 {
			return &ColumnError{Column: strings.TrimSpace(h.Names[i]), AlreadyPresent: true}
		}
		return nil
	}
	h.prefix = DefaultPrefix
	for n := 2; h.indexOfResult(h.prefix) >= 0; n++ {
		h.prefix = fmt.Sprintf("result%d_", n)
	}
	return nil
}

// indexOfResult is the first column that is named like one of a result with a prefix, or -1.
func (h *header) indexOfResult(prefix string) int {
	return slices.IndexFunc(h.Names, func(name string) bool {
		return slices.ContainsFunc(resultColumns, func(c string) bool { return strings.EqualFold(strings.TrimSpace(name), prefix+c) })
	})
}

// earlierResults are the columns of results that the file has already, whatever their prefix: what a geocoder found is not an address
// that someone typed. A prefix is that of a result if a label, a score and a code of a commune have it.
func (h *header) earlierResults() []string {
	var earlier []string
	for _, name := range h.Names {
		prefix, isLabel := strings.CutSuffix(name, "label")
		if !isLabel || prefix == "" || !slices.Contains(h.Names, prefix+"score") || !slices.Contains(h.Names, prefix+"citycode") {
			continue
		}
		for _, other := range h.Names {
			if strings.HasPrefix(other, prefix) {
				earlier = append(earlier, strings.TrimSpace(other))
			}
		}
	}
	return earlier
}

// profileRows is how many rows are read to find out what the columns hold.
const profileRows = 2000

// leaveOutResults excludes the results of earlier runs from the address columns.
func (h *header) leaveOutResults() map[string]mapping.Target {
	targets := map[string]mapping.Target{}
	for _, name := range h.earlierResults() {
		targets[name] = mapping.Target{LeftOut: "a result"}
	}
	return targets
}

// guessColumns finds the columns of the address by the table of names of package mapping, and by the content of the first rows.
func (h *header) guessColumns(j Job) error {
	profile, err := h.profile()
	if err != nil {
		return err
	}
	if profile.Rows == 0 {
		return &csvfile.FormatError{Reason: "it has names of columns, and nothing below them"}
	}
	m, _ := mapping.Guess(profile, mapping.Given{Columns: h.leaveOutResults()})
	h.found, h.witnesses = map[mapping.Field][]int{}, map[int]mapping.Evidence{}
	for i, target := range m.Targets {
		if slices.Contains(addressFields, target.Field) {
			h.found[target.Field] = slices.Insert(h.found[target.Field], h.countOwn(target.Field), i)
			h.witnesses[i] = target.Evidence
		}
		if slices.Contains(addressFields, target.Fallback) {
			h.found[target.Fallback] = append(h.found[target.Fallback], i)
		}
	}
	if !h.hasAddress() {
		return &NoAddressError{h.Names}
	}
	return nil
}

// hasAddress reports whether the detected columns can hold an address. A complement or a locality alone does not locate anything.
func (h *header) hasAddress() bool {
	for _, field := range []mapping.Field{mapping.StreetName, mapping.Line1, mapping.City} {
		if len(h.found[field]) > 0 {
			return true
		}
	}
	return len(h.found[mapping.Line2]) > 0 && len(h.found[mapping.PostalCode])+len(h.found[mapping.PostalTown])+len(h.found[mapping.InseeCode]) > 0
}

// countOwn is how many columns have a field of their own. Those of which it is only the fallback come after them.
func (h *header) countOwn(f mapping.Field) int {
	n := 0
	for _, i := range h.found[f] {
		if _, isOwn := h.witnesses[i]; isOwn {
			n++
		}
	}
	return n
}

// profile makes a profile of the columns from the first rows.
func (h *header) profile() (*mapping.Profile, error) {
	rows, err := h.Rows(h.FirstRow)
	if err != nil {
		return nil, err
	}
	columns := make([]record.Column, len(h.Names))
	for i, name := range h.Names {
		columns[i].Name = strings.TrimSpace(name)
	}
	p := &mapping.Profile{}
	for p.Rows < profileRows {
		r, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		values := make([]record.Value, min(len(columns), len(r.Cells)))
		for i := range values {
			values[i].Text = h.field(r, i)
		}
		p.Observe(columns, record.Record{Line: p.Rows + 1, Values: values})
	}
	return p, nil
}

// describe is the layout in the terms of its users.
func (h *header) describe() Layout {
	out := Layout{Encoding: h.Encoding, Separator: string(h.Separator), Prefix: h.prefix}
	add := func(i int, use string) {
		if i >= 0 {
			out.Columns = append(out.Columns, Column{Name: strings.TrimSpace(h.Names[i]), Use: use, IsByName: h.witnesses[i] != mapping.ByContent})
		}
	}
	for _, i := range h.named {
		add(i, AddressText)
	}
	for _, field := range addressFields {
		own := h.countOwn(field)
		for n, i := range h.found[field] {
			add(i, string(field))
			out.Columns[len(out.Columns)-1].IsFallback = n >= own
		}
	}
	add(h.postcodeColumn, PostcodeFilter)
	add(h.cityCodeColumn, CityCodeFilter)
	return out
}
