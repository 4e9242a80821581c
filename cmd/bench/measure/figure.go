// Package measure is what all benchmarks share: one loop, one load client, one kind of figure, one table. Its constraint: a
// client must cost less than the server that it measures, because both share the machine.
//
//	Load.Run ──> Client.Send ─┐
//	journal, address engine ──┴─> Loop ──> Latencies ──> Figure ──> Medians ──> Table, or a line of JSON
//
// Latencies are histograms of HdrHistogram. The load generator is our own: vegeta sends at a given rate through net/http,
// whose client needs more processor than the handler under test, and it cannot send again over the same connection what
// was not answered. Here each connection sends the next request once the last one is answered, and a request's bytes are
// made once.
package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lieudit/cmd/terminal"
)

// Figure is one measured figure. A number that is 0 was not measured.
type Figure struct {
	Labels  []Label            // what was measured, in the order of the table's columns
	Value   float64            // in Unit
	Unit    string             // such as "/s" or "ms"
	Raw     float64            // what the machine does without what is measured, in Unit
	Samples int                // calls that P50, P99 and Max are of
	P50     float64            // milliseconds
	P99     float64            // milliseconds
	Max     float64            // milliseconds
	Bytes   int64              // that the result takes on the disk
	Extra   map[string]float64 // other numbers by name; here 0 is a number
}

// Label names a condition under which a figure was measured, such as {"rows", 1000}. Value is a string or an int.
type Label struct {
	Name  string
	Value any
}

// With returns the figure with labels before its own.
func (f Figure) With(labels ...Label) Figure {
	f.Labels = append(labels, f.Labels...)
	return f
}

// Label is the value of a label as text, or "".
func (f Figure) Label(name string) string {
	for _, l := range f.Labels {
		if l.Name == name {
			return fmt.Sprint(l.Value)
		}
	}
	return ""
}

// ratio is Value as a share of Raw, 0 where there is no Raw to compare with.
func (f Figure) ratio() float64 {
	if f.Raw == 0 {
		return 0
	}
	return f.Value / f.Raw
}

// cell is one number or label of a figure. Columns are sorted by order; those of equal order stay in the order of their
// figures.
type cell struct {
	name  string
	order int
	value any // string, int or float64
}

// cells returns the labels first, then the numbers that were measured, then the extra numbers, sorted by name. The order 100
// of extra numbers is above that of every other column.
func (f Figure) cells() (all []cell) {
	for _, l := range f.Labels {
		all = append(all, cell{l.Name, 0, l.Value})
	}
	for i, c := range []cell{
		{"value", 0, f.Value}, {"unit", 0, f.Unit}, {"raw", 0, f.Raw}, {"ratio", 0, f.ratio()}, {"samples", 0, float64(f.Samples)},
		{"p50 ms", 0, f.P50}, {"p99 ms", 0, f.P99}, {"max ms", 0, f.Max}, {"bytes", 0, float64(f.Bytes)},
	} {
		if c.value != 0.0 && c.value != "" {
			all = append(all, cell{c.name, 1 + i, c.value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
		all = append(all, cell{name, 100, f.Extra[name]})
	}
	return all
}

// MarshalJSON writes one object of all labels and numbers; a blank in a name becomes an underscore. Numbers that were not
// measured are left out.
func (f Figure) MarshalJSON() ([]byte, error) {
	fields := map[string]any{}
	for _, c := range f.cells() {
		fields[strings.ReplaceAll(c.name, " ", "_")] = c.value
	}
	return json.Marshal(fields)
}

// Table collects figures for people. Figures whose labels have the same names in the same order share a table. The zero Table
// is empty and ready for use.
type Table struct{ groups [][]Figure }

// Add adds a figure as the last row of its table.
func (t *Table) Add(f Figure) {
	for i, group := range t.groups {
		if slices.EqualFunc(group[0].Labels, f.Labels, func(a, b Label) bool { return a.Name == b.Name }) {
			t.groups[i] = append(group, f)
			return
		}
	}
	t.groups = append(t.groups, []Figure{f})
}

// Tables returns the tables in the order in which their first figures were added. A table has a column for each cell that any
// of its figures has.
func (t *Table) Tables() (all []terminal.Table) {
	for _, group := range t.groups {
		all = append(all, newTable(group))
	}
	return all
}

// newTable returns one table with a head line and a row a figure. A cell is empty where its figure does not have the number.
func newTable(figures []Figure) terminal.Table {
	var columns []cell
	for _, f := range figures {
		for _, c := range f.cells() {
			if !slices.ContainsFunc(columns, func(known cell) bool { return known.name == c.name }) {
				columns = append(columns, c)
			}
		}
	}
	slices.SortStableFunc(columns, func(a, b cell) int { return a.order - b.order })
	rows := make(terminal.Table, 1+len(figures))
	for _, column := range columns {
		rows[0] = append(rows[0], strings.ToUpper(column.name))
		for i, f := range figures {
			text := ""
			for _, c := range f.cells() {
				if c.name == column.name {
					text = formatCell(c.value)
				}
			}
			rows[1+i] = append(rows[1+i], text)
		}
	}
	return rows
}

// formatCell shows whole numbers, and all from 1,000 on, without decimals: a measurement is not exact to a thousandth.
func formatCell(value any) string {
	switch v := value.(type) {
	case int:
		return terminal.GroupThousands(v)
	case float64:
		if v == math.Trunc(v) || math.Abs(v) >= 1000 {
			return terminal.GroupThousands(int(v))
		}
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprint(value)
}

// Medians runs n rounds and returns the figures of a round with the median of each of their numbers. Every round must
// return the same figures in the same order. The first error of a round ends it, without figures. Things that are compared
// should take turns within a round: a busy minute of the machine then affects all of them. With an even number of rounds a
// median is the upper of the two middle values.
func Medians(rounds int, round func() ([]Figure, error)) ([]Figure, error) {
	var all [][]Figure
	for range rounds {
		figures, err := round()
		if err != nil {
			return nil, err
		}
		all = append(all, figures)
	}
	if len(all) == 0 {
		return nil, nil
	}
	medians := slices.Clone(all[0])
	for i := range medians {
		median := func(number func(Figure) float64) float64 {
			values := make([]float64, rounds)
			for n, figures := range all {
				values[n] = number(figures[i])
			}
			slices.Sort(values)
			return values[rounds/2]
		}
		f := &medians[i]
		f.Samples = int(median(func(f Figure) float64 { return float64(f.Samples) }))
		f.Value, f.Raw = median(func(f Figure) float64 { return f.Value }), median(func(f Figure) float64 { return f.Raw })
		f.P50, f.P99, f.Max = median(func(f Figure) float64 { return f.P50 }), median(func(f Figure) float64 { return f.P99 }), median(func(f Figure) float64 { return f.Max })
		extra := map[string]float64{}
		for name := range f.Extra {
			extra[name] = median(func(f Figure) float64 { return f.Extra[name] })
		}
		f.Extra = extra
	}
	return medians, nil
}

// Output is where a benchmark reports to. Report is called by one goroutine at a time and receives each figure as soon as it
// is complete. Progress may be called concurrently.
type Output struct {
	Report   func(Figure) error
	Progress func(what string, done, total int) // total 0: it is not known
}

// ReportMedians runs rounds and reports their medians; see Medians.
func (o Output) ReportMedians(rounds int, round func() ([]Figure, error)) error {
	figures, err := Medians(rounds, round)
	for _, f := range figures {
		err = errors.Join(err, o.Report(f))
	}
	return err
}
