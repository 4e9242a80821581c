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

// Table is rows of cells. The first row holds the headers.
type Table [][]string

// PrintTable prints rows in aligned columns on Out. It sanitizes every cell and shows an empty one as a dash. Rows may have
// different lengths.
func (t Terminal) PrintTable(rows Table) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = dashIfEmpty(SanitizeText(cell))
		}
		// tabwriter pads only cells that end in a tab. The last cell has none, so no row ends in spaces.
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// dashIfEmpty shows that a cell is empty, which spaces alone would not.
func dashIfEmpty(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// PrintFields prints one line for each name and the value after it, and leaves out names whose value is empty. It sanitizes
// the values, not the names.
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

// PrintLine prints a formatted line on Out. It does not sanitize its arguments: callers pass foreign text through
// SanitizeText.
func (t Terminal) PrintLine(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}

// PrintJSON prints a value as one line of JSON on Out. It does not sanitize texts: JSON is for programs.
func (t Terminal) PrintJSON(v any) error { return json.NewEncoder(t.Out).Encode(v) }

// SanitizeText replaces control characters, line and paragraph separators and characters that change the direction of
// writing. Foreign text could use them to move the cursor, or to change how the text around it reads.
func SanitizeText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return '�'
		}
		return r
	}, text)
}

// EmptyIf is text, or "" if isEmpty.
func EmptyIf(isEmpty bool, text string) string {
	if isEmpty {
		return ""
	}
	return text
}

// GroupThousands formats a count with commas: 1234567 is "1,234,567". The count must not be negative.
func GroupThousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// FormatBytes formats a size in kB, MB or GB, which are powers of 1000. dustin/go-humanize rounds differently, which would
// change what the commands print.
func FormatBytes(bytes int64) string {
	switch {
	case bytes < 1e6:
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(bytes)/1e9)
}

// FormatAge formats a duration in the largest unit of which it has at least two, rounded down; less than two minutes are
// seconds.
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

// ProgressBar shows on a terminal how far long work has advanced. If Out is not a terminal it draws nothing. It is safe for
// concurrent use. It has no goroutine: it draws only within Update and Clear.
type ProgressBar struct {
	out io.Writer // nil: silent

	mu       sync.Mutex
	nextDraw time.Time
	isShown  bool
}

// NewProgressBar returns a bar that draws on Err, so that Out holds only results.
func (t Terminal) NewProgressBar() *ProgressBar {
	if !t.IsTerminal {
		return &ProgressBar{}
	}
	return &ProgressBar{out: t.Err}
}

const (
	barWidth    = 30                     // characters between the brackets
	barInterval = 100 * time.Millisecond // between two drawings: redrawing for each row would slow the work down
)

// Update draws the bar, unless it was drawn less than barInterval ago. done and total may be in any unit. A total of 0 or
// less is unknown: then only the label is drawn.
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
	share := min(float64(done)/float64(total), 1) // done may exceed an estimated total
	filled := int(share * barWidth)
	fmt.Fprintf(b.out, "\r\033[K[%s%s] %3.0f %%  %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), 100*share, label)
}

// Clear removes the bar, so that a result or an error begins on an empty line. A later Update draws it again.
func (b *ProgressBar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isShown {
		fmt.Fprint(b.out, "\r\033[K")
		b.isShown = false
	}
}
