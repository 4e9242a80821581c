package keystrokes

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"slices"

	"lieudit/cmd/bench/measure"
)

// The defects of a list of suggestions.
const (
	blank      = "blank"      // there are none
	unparsable = "unparsable" // there are none: the text is refused, as it does not begin an address
	lost       = "lost"       // they lack the address that was among those for a shorter text
)

// typing is the result of typing one line.
type typing struct {
	keys              int // of the whole line
	lists             int
	blank, unparsable int // lists; unparsable ones are blank, too
	first, five       int // keys until the address was first, and among the suggestions; 0: it never was
	isAmong, isLost   bool
}

// add adds the list after one more key: the rank of the address in it from 0, or -1, and its length. It returns the defect of the list, or "".
func (t *typing) add(keys, rank, length int, isUnparsable bool) (what string) {
	t.lists++
	if rank == 0 && t.first == 0 {
		t.first = keys
	}
	if rank >= 0 && t.five == 0 {
		t.five = keys
	}
	wasAmong := t.isAmong
	t.isAmong = rank >= 0
	if wasAmong && !t.isAmong {
		t.isLost, what = true, lost
	}
	if length == 0 {
		t.blank++
		what = blank
	}
	if isUnparsable {
		t.unparsable++
		what = unparsable
	}
	return what
}

// tally adds up the lines that were typed in one way.
type tally struct {
	lines, lists      int
	blank, unparsable int
	lost, never       int // lines: lost again, never among the suggestions
	first, five       []int
	latencies         *measure.Latencies
}

func newTally() *tally { return &tally{latencies: measure.NewLatencies()} }

// add adds one line. If the address never was among the suggestions, or first, the line counts as one that takes all keys.
func (t *tally) add(l typing) {
	t.lines++
	t.lists += l.lists
	t.blank += l.blank
	t.unparsable += l.unparsable
	if l.isLost {
		t.lost++
	}
	if l.five == 0 {
		t.never++
	}
	keysOf := func(keys int) int {
		if keys == 0 {
			return l.keys
		}
		return keys
	}
	t.first, t.five = append(t.first, keysOf(l.first)), append(t.five, keysOf(l.five))
}

// figure returns the figure of one way. Its value is the mean number of keys until the address is among the suggestions.
func (t *tally) figure(way, bias, geocoder string) measure.Figure {
	f := t.latencies.Figure(measure.Label{Name: "written", Value: way}, measure.Label{Name: "bias", Value: bias}, measure.Label{Name: "geocoder", Value: geocoder})
	f.Value, f.Unit = mean(t.five), "keys to 5"
	f.Extra = map[string]float64{
		"addresses": float64(t.lines), "blank": float64(t.blank), "blank %": percent(t.blank, t.lists), "unparsable": float64(t.unparsable),
		"lost": float64(t.lost), "never": float64(t.never),
		"median to 5": median(t.five), "keys to 1st": mean(t.first), "median to 1st": median(t.first),
	}
	return f
}

// mean returns the mean with one decimal, 0 of nothing.
func mean(of []int) float64 {
	sum := 0
	for _, n := range of {
		sum += n
	}
	return math.Round(10*float64(sum)/float64(max(len(of), 1))) / 10
}

// median returns the upper of the two middle values, 0 of nothing.
func median(of []int) float64 {
	if len(of) == 0 {
		return 0
	}
	return float64(slices.Sorted(slices.Values(of))[len(of)/2])
}

// percent returns a share in percent with two decimals.
func percent(part, whole int) float64 {
	return math.Round(10_000*float64(part)/float64(max(whole, 1))) / 100
}

// log writes a line for each defective list. Without a name it writes nothing.
type log struct {
	file *os.File
	csv  *csv.Writer
}

// newLog creates the file and writes its header.
func newLog(name string) (*log, error) {
	if name == "" {
		return &log{}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	w := &log{file, csv.NewWriter(file)}
	w.csv.Comma = ';'
	return w, w.csv.Write([]string{"geocoder", "written", "bias", "what", "q", "expected id", "label", "first"})
}

// write writes the line of one list.
func (w *log) write(geocoder, way, bias, what, text string, meant line, found []suggestion) error {
	if w.file == nil {
		return nil
	}
	first := ""
	if len(found) > 0 {
		first = found[0].label
	}
	return w.csv.Write([]string{geocoder, way, bias, what, text, meant.id, meant.label, first})
}

// close flushes and closes the file.
func (w *log) close() error {
	if w.file == nil {
		return nil
	}
	w.csv.Flush()
	return errors.Join(w.csv.Error(), w.file.Close())
}
