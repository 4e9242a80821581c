package accuracy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
)

// resultColumns is the header of a file of results. The first nine columns are those of a peer's file, so that two files can be compared line
// by line.
var resultColumns = []string{"set", "kind", "q", "expected id", "found id", "label", "score", "right", "milliseconds", "verdict"}

// resultWriter writes a line for each question. Without a name it writes nothing.
type resultWriter struct {
	file *os.File
	csv  *csv.Writer
}

// newResultWriter creates a file of results and writes its header.
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

// write writes a question and its first answer as a line.
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

// close flushes and closes the file.
func (w *resultWriter) close() error {
	if w.file == nil {
		return nil
	}
	w.csv.Flush()
	return errors.Join(w.csv.Error(), w.file.Close())
}

// The columns that are read from a peer's file: see resultColumns. A file of this package's own results has them too.
const (
	peerSet          = 0
	peerKind         = 1
	peerRight        = 7
	peerMilliseconds = 8
	peerColumns      = 9
)

// peerTally are the answers of another geocoder to the questions of one kind.
type peerTally struct {
	asked, right int
	milliseconds []float64
}

// peer holds a peer's answers by set and kind.
type peer map[[2]string]*peerTally

// readPeerFile reads a peer's file. Without a name there is no peer.
func readPeerFile(name string) (p peer, err error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	p, err = readPeer(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// readPeer reads the lines of a peer's file, with or without a header.
func readPeer(r io.Reader) (peer, error) {
	all := peer{}
	records := csv.NewReader(r)
	records.Comma = ';'
	for isFirst := true; ; isFirst = false {
		fields, err := records.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if isFirst && fields[peerSet] == resultColumns[peerSet] {
			continue
		}
		if err := all.add(fields); err != nil {
			line, _ := records.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// add adds one line.
func (p peer) add(fields []string) error {
	if len(fields) < peerColumns {
		return fmt.Errorf("it has %d columns, want at least %d", len(fields), peerColumns)
	}
	ms, err := strconv.ParseFloat(fields[peerMilliseconds], 64)
	if err != nil {
		return err
	}
	right := fields[peerRight]
	if right != "0" && right != "1" {
		return fmt.Errorf("right is %q and neither 0 nor 1", right)
	}
	key := [2]string{fields[peerSet], fields[peerKind]}
	answers := p[key]
	if answers == nil {
		answers = &peerTally{}
		p[key] = answers
	}
	answers.asked++
	answers.right += count(right == "1")
	answers.milliseconds = append(answers.milliseconds, ms)
	return nil
}

// addTo adds the peer's share of right answers and its median time to the figure of a group that it was asked. It adds the number of the peer's
// questions if it differs from the figure's.
func (p peer) addTo(f measure.Figure, g group) {
	answers := p[[2]string{g.set, g.kind}]
	if answers == nil {
		return
	}
	slices.Sort(answers.milliseconds)
	f.Extra["peer first %"] = percent(answers.right, answers.asked)
	f.Extra["peer p50 ms"] = answers.milliseconds[len(answers.milliseconds)/2]
	if answers.asked != f.Samples {
		f.Extra["peer asked"] = float64(answers.asked)
	}
}
