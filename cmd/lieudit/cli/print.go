package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// table is rows of cells, its heads first.
type table [][]string

// printTable prints rows in columns.
func (p Program) printTable(t table) error {
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, row := range t {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = dashIfEmpty(sanitizeText(cell))
		}
		// The line feed after a tab less keeps the last column free of trailing spaces.
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printFields prints names and values, two by two, and leaves out what is empty.
func (p Program) printFields(pairs ...string) error {
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", pairs[i], sanitizeText(pairs[i+1])); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printLine prints text for people.
func (p Program) printLine(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Out, format+"\n", args...)
	return err
}

// sanitizeText takes from a text what could write elsewhere on a terminal than where it stands, or make what stands there
// read otherwise.
func sanitizeText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return '�'
		}
		return r
	}, text)
}

func dashIfEmpty(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// formatTime is a time to the minute.
func (p Program) formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02 15:04")
}

// formatExactTime is a time that can be given back to --as-of, --from and --to without loss.
func (p Program) formatExactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02T15:04:05.000000Z07:00")
}
