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

// runState is the progress of a run, as Out.resume holds it in JSON. The two offsets and the counts describe the same
// moment, so they are saved together.
type runState struct {
	Input        inputIdentity `json:"de"`
	BytesRead    int64         `json:"lu"`    // of the decoded text of In: the end of the last row written
	BytesWritten int64         `json:"ecrit"` // of Out.part
	Counts       Counts        `json:"compte"`
}

// inputIdentity is what a run must have in common with the unfinished one that it resumes: otherwise one result would hold
// rows of two inputs. A changed file is noticed by its size and time, not by its content.
type inputIdentity struct {
	Size      int64     `json:"octets"`
	Modified  time.Time `json:"modifie_le"`
	Columns   []string  `json:"colonnes"`
	Filters   [2]string `json:"filtres"` // the columns with postcode and INSEE code
	Separator string    `json:"separateur"`
	Encoding  string    `json:"codage"`
	Vintage   string    `json:"millesime"`
	Fallback  bool      `json:"repli,omitempty"`
}

// isEqual compares times as instants: JSON keeps the instant and loses the location.
func (i inputIdentity) isEqual(o inputIdentity) bool {
	i.Columns, o.Columns = slices.Clip(i.Columns), slices.Clip(o.Columns)
	return i.Size == o.Size && i.Modified.Equal(o.Modified) && slices.Equal(i.Columns, o.Columns) && i.Filters == o.Filters &&
		i.Separator == o.Separator && i.Encoding == o.Encoding && i.Vintage == o.Vintage && i.Fallback == o.Fallback
}

// ErrRunMismatch says that the unfinished run beside Out was of another input. Restart drops that run.
var ErrRunMismatch = errors.New("an unfinished run was of another file, other columns, another fallback or another vintage")

// ErrRunInProgress says that another process writes the same result.
var ErrRunInProgress = errors.New("another run is at work on it")

// partialResult is an unfinished result: the rows written so far in Out.part, the progress in Out.resume. A kill may leave
// bytes in Out.part beyond BytesWritten; a resumed run cuts them off. The lock on the open Out.part keeps a second run
// away; package gofrs/flock would open the file once more for what is one call here. It is not safe for concurrent use.
type partialResult struct {
	file      *os.File
	writer    *bufio.Writer
	state     runState
	statePath string
}

// openPartialResult begins a result or resumes one. The caller ends it with close, which keeps it for another run, or with
// moveIntoPlace.
func (j Job) openPartialResult(h header) (_ *partialResult, err error) {
	info, err := os.Stat(j.In)
	if err != nil {
		return nil, err
	}
	input := inputIdentity{info.Size(), info.ModTime().UTC(), j.Columns, [2]string{j.Postcode, j.CityCode}, string(h.separator), j.Encoding, j.Vintage, j.Fallback}
	file, err := os.OpenFile(j.Out+".part", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	p := &partialResult{file: file, statePath: j.Out + ".resume"}
	if err := p.startOrResume(j, h, input); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// startOrResume locks the file and leaves it ready for the next row. A new run writes and saves the header line; a resumed
// one cuts the file after the last row whose progress was saved. Its errors are ErrRunInProgress, ErrRunMismatch and
// those of files.
func (p *partialResult) startOrResume(j Job, h header, input inputIdentity) error {
	if err := syscall.Flock(int(p.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s: %w", p.file.Name(), ErrRunInProgress)
	}
	found, err := p.loadState()
	if err != nil {
		return err
	}
	isNew := !found || j.Restart
	if !isNew && !p.state.Input.isEqual(input) {
		return fmt.Errorf("%s: %w", p.statePath, ErrRunMismatch)
	}
	if isNew {
		p.state = runState{Input: input, BytesRead: h.rowsOffset}
	}
	if err := p.file.Truncate(p.state.BytesWritten); err != nil {
		return err
	}
	if _, err := p.file.Seek(p.state.BytesWritten, 0); err != nil {
		return err
	}
	p.writer = bufio.NewWriterSize(p.file, 1<<18) // bytes, a few batches
	if !isNew {
		return nil
	}
	if h.hasBOM {
		p.appendText(bom)
	}
	p.appendText(h.formatRow(row{raw: h.raw, fields: h.columns}, resultColumnNames()))
	return p.saveProgress()
}

// loadState reads the progress of an unfinished run into state. found is false when there is none.
func (p *partialResult) loadState() (found bool, err error) {
	text, err := os.ReadFile(p.statePath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, &p.state)
}

// appendText buffers text and counts it as written. The text is durable after saveProgress, which also returns an error of
// writing: bufio.Writer keeps the first one.
func (p *partialResult) appendText(text string) {
	n, _ := p.writer.WriteString(text)
	p.state.BytesWritten += int64(n)
}

// saveProgress makes the rows durable first and then replaces the file with the progress, atomically. So the progress never
// counts a row that a power cut can take away.
func (p *partialResult) saveProgress() error {
	if err := errors.Join(p.writer.Flush(), p.file.Sync()); err != nil {
		return err
	}
	text, err := json.Marshal(p.state)
	if err != nil {
		return err
	}
	next, err := os.Create(p.statePath + ".new")
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), p.statePath)
}

// close releases the lock and keeps the files, so that another run can resume.
func (p *partialResult) close() error { return p.file.Close() }

// moveIntoPlace makes the complete result durable, renames it to its final name and removes the progress.
func (p *partialResult) moveIntoPlace(out string) error {
	err := errors.Join(p.saveProgress(), p.file.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(strings.TrimSuffix(p.statePath, ".resume")+".part", out); err != nil {
		return err
	}
	return os.Remove(p.statePath)
}
