package accuracy

import (
	"encoding/csv"
	"errors"
	"os"
	"strconv"
	"time"

	"lieudit/queries/address"
)

// resultColumns is the head line of a file of results. The first nine columns are those of a peer's file, so that two files
// can be compared line by line.
var resultColumns = []string{"set", "kind", "q", "expected id", "found id", "label", "score", "right", "milliseconds", "verdict"}

// resultWriter writes a line for each question. Without a name it writes nothing.
type resultWriter struct {
	file *os.File
	csv  *csv.Writer
}

// newResultWriter creates a file of results and writes its head line.
func newResultWriter(name string) (*resultWriter, error) {
	if name == "" {
		return &resultWriter{}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	w := &resultWriter{file: file, csv: csv.NewWriter(file)}
	w.csv.Comma = ';'
	return w, w.csv.Write(resultColumns)
}

// write writes the line of a question and its first answer.
func (w *resultWriter) write(q question, answers []address.Match, isRight bool, took time.Duration) error {
	if w.file == nil {
		return nil
	}
	found, label, score, verdict, right := "", "", "", "", "0"
	if len(answers) > 0 {
		best := answers[0]
		found, label, score, verdict = best.ID, best.Label, strconv.FormatFloat(best.Score, 'f', 4, 64), string(best.Verdict)
	}
	if isRight {
		right = "1"
	}
	ms := strconv.FormatFloat(float64(took.Microseconds())/1e3, 'f', 3, 64)
	return w.csv.Write([]string{q.set, q.kind, q.text, q.id, found, label, score, right, ms, verdict})
}

// close writes what is buffered and closes the file.
func (w *resultWriter) close() error {
	if w.file == nil {
		return nil
	}
	w.csv.Flush()
	return errors.Join(w.csv.Error(), w.file.Close())
}
