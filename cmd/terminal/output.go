package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"
)

// Table is rows of cells, the headers first.
type Table [][]string

// PrintTable prints rows in columns. An empty cell is shown as a dash.
func (t Terminal) PrintTable(rows Table) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = dashIfEmpty(SanitizeText(cell))
		}
		// No tab ends the row: so the last column has no trailing spaces.
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

func dashIfEmpty(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// PrintFields prints names and values, two by two, and leaves out what is empty.
func (t Terminal) PrintFields(pairs ...string) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", pairs[i], SanitizeText(pairs[i+1])); err != nil {
			return err
		}
	}
	return w.Flush()
}

// PrintLine prints text for people. It does not sanitize its arguments.
func (t Terminal) PrintLine(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}

// PrintJSON prints a value as one line of JSON.
func (t Terminal) PrintJSON(v any) error { return json.NewEncoder(t.Out).Encode(v) }

// SanitizeText replaces the characters that could write elsewhere on a terminal than where the text stands, or change how
// what stands there is read.
func SanitizeText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return '�'
		}
		return r
	}, text)
}

// EmptyIf is a text, or "" where isEmpty holds.
func EmptyIf(isEmpty bool, text string) string {
	if isEmpty {
		return ""
	}
	return text
}

// GroupThousands is a count with a comma between its thousands.
func GroupThousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// FormatBytes is a size in the unit that suits it. dustin/go-humanize rounds otherwise, and what is shown stays as it was.
func FormatBytes(bytes int64) string {
	switch {
	case bytes < 1e6:
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}

// FormatAge is a duration to the unit that matters.
func FormatAge(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// ProgressBar shows on a terminal how far long work has advanced; elsewhere it is silent. It is safe for concurrent use.
type ProgressBar struct {
	out io.Writer // nil: silent

	mu       sync.Mutex
	nextDraw time.Time
	isShown  bool
}

// NewProgressBar is a bar on standard error, so that standard output holds only results.
func (t Terminal) NewProgressBar() *ProgressBar {
	if !t.IsTerminal {
		return &ProgressBar{}
	}
	return &ProgressBar{out: t.Err}
}

const (
	barWidth    = 30
	barInterval = 100 * time.Millisecond
)

// Update draws the bar, at most ten times a second. Total 0 means that the total is not known: the label alone is drawn.
func (b *ProgressBar) Update(label string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.out == nil || now.Before(b.nextDraw) {
		return
	}
	b.nextDraw, b.isShown = now.Add(barInterval), true
	if total <= 0 {
		fmt.Fprintf(b.out, "\r\033[K%s", label)
		return
	}
	part := min(float64(done)/float64(total), 1)
	full := int(part * barWidth)
	fmt.Fprintf(b.out, "\r\033[K[%s%s] %3.0f %%  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*part, label)
}

// Clear removes the bar.
func (b *ProgressBar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isShown {
		fmt.Fprint(b.out, "\r\033[K")
		b.isShown = false
	}
}
