package csvgeocode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runState is how far a run has come: both positions and the counts belong together.
type runState struct {
	Input        inputIdentity `json:"de"`
	BytesRead    int64         `json:"lu"`
	BytesWritten int64         `json:"ecrit"`
	Counts       Counts        `json:"compte"`
}

// inputIdentity is what a run must have in common with the one it goes on with.
type inputIdentity struct {
	Size      int64     `json:"octets"`
	Modified  time.Time `json:"modifie_le"`
	Columns   []string  `json:"colonnes"`
	Filters   [2]string `json:"filtres"`
	Separator string    `json:"separateur"`
	Encoding  string    `json:"codage"`
	Vintage   string    `json:"millesime"`
}

func (o inputIdentity) isEqual(p inputIdentity) bool {
	o.Columns, p.Columns = slices.Clip(o.Columns), slices.Clip(p.Columns)
	return o.Size == p.Size && o.Modified.Equal(p.Modified) && slices.Equal(o.Columns, p.Columns) && o.Filters == p.Filters &&
		o.Separator == p.Separator && o.Encoding == p.Encoding && o.Vintage == p.Vintage
}

// ErrRunMismatch: an unfinished run was about something else.
var ErrRunMismatch = errors.New("an unfinished run was of another file, other columns or another vintage")

// ErrRunInProgress: another run writes the same result.
var ErrRunInProgress = errors.New("another run is at work on it")

// partialResult is the result as far as it is written, in a file of its own, with its state in another.
type partialResult struct {
	file      *os.File
	writer    *bufio.Writer
	state     runState
	statePath string // of the state
}

// openPartialResult begins a result, or goes on with one.
func (j Job) openPartialResult(h header) (_ *partialResult, err error) {
	info, err := os.Stat(j.In)
	if err != nil {
		return nil, err
	}
	input := inputIdentity{info.Size(), info.ModTime().UTC(), j.Columns, [2]string{j.Postcode, j.CityCode}, string(h.separator), j.Encoding, j.Vintage}
	file, err := os.OpenFile(j.Out+".part", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	d := &partialResult{file: file, statePath: j.Out + ".resume"}
	if err := d.startOrResume(j, h, input); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return d, nil
}

func (d *partialResult) startOrResume(j Job, h header, input inputIdentity) error {
	if err := syscall.Flock(int(d.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s: %w", d.file.Name(), ErrRunInProgress)
	}
	found, err := d.loadState()
	if err != nil {
		return err
	}
	isNew := !found || j.Restart
	if !isNew && !d.state.Input.isEqual(input) {
		return fmt.Errorf("%s: %w", d.statePath, ErrRunMismatch)
	}
	if isNew {
		d.state = runState{Input: input, BytesRead: h.rowsOffset}
	}
	if err := d.file.Truncate(d.state.BytesWritten); err != nil {
		return err
	}
	if _, err := d.file.Seek(d.state.BytesWritten, 0); err != nil {
		return err
	}
	d.writer = bufio.NewWriterSize(d.file, 1<<18)
	if !isNew {
		return nil
	}
	if h.hasBOM {
		d.appendText(bom)
	}
	d.appendText(h.formatRow(row{raw: h.raw, fields: h.columns}, resultColumnNames()))
	return d.saveProgress()
}

// loadState reads the state of an unfinished run, if there is one.
func (d *partialResult) loadState() (found bool, err error) {
	text, err := os.ReadFile(d.statePath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, &d.state)
}

// appendText writes text, which is not sure before save. An error comes up there.
func (d *partialResult) appendText(text string) {
	n, _ := d.writer.WriteString(text)
	d.state.BytesWritten += int64(n)
}

// saveProgress makes what was added sure, then the state that counts it.
func (d *partialResult) saveProgress() error {
	if err := errors.Join(d.writer.Flush(), d.file.Sync()); err != nil {
		return err
	}
	text, err := json.Marshal(d.state)
	if err != nil {
		return err
	}
	next, err := os.Create(d.statePath + ".new")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), d.statePath)
}

func (d *partialResult) close() error { return d.file.Close() }

// moveIntoPlace puts the result into place.
func (d *partialResult) moveIntoPlace(out string) error {
	err := errors.Join(d.saveProgress(), d.file.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(strings.TrimSuffix(d.statePath, ".resume")+".part", out); err != nil {
		return err
	}
	return os.Remove(d.statePath)
}
