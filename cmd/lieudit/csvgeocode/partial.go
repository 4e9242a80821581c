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

// runState is the progress of a run. The two offsets and the counts belong together: they are saved as one.
type runState struct {
	Input        inputIdentity `json:"de"`
	BytesRead    int64         `json:"lu"`
	BytesWritten int64         `json:"ecrit"`
	Counts       Counts        `json:"compte"`
}

// inputIdentity is what a run must have in common with the unfinished one that it resumes.
type inputIdentity struct {
	Size      int64     `json:"octets"`
	Modified  time.Time `json:"modifie_le"`
	Columns   []string  `json:"colonnes"`
	Filters   [2]string `json:"filtres"`
	Separator string    `json:"separateur"`
	Encoding  string    `json:"codage"`
	Vintage   string    `json:"millesime"`
}

// isEqual compares times as instants: JSON keeps the instant and loses the location.
func (o inputIdentity) isEqual(p inputIdentity) bool {
	o.Columns, p.Columns = slices.Clip(o.Columns), slices.Clip(p.Columns)
	return o.Size == p.Size && o.Modified.Equal(p.Modified) && slices.Equal(o.Columns, p.Columns) && o.Filters == p.Filters &&
		o.Separator == p.Separator && o.Encoding == p.Encoding && o.Vintage == p.Vintage
}

// ErrRunMismatch says that the unfinished run was about another input.
var ErrRunMismatch = errors.New("an unfinished run was of another file, other columns or another vintage")

// ErrRunInProgress says that another process writes the same result.
var ErrRunInProgress = errors.New("another run is at work on it")

// partialResult is an unfinished result: the rows written so far in Out.part, the progress in Out.resume. Bytes of Out.part
// beyond BytesWritten are leftovers of a kill; a resumed run cuts them off. The open file is the lock between two runs;
// gofrs/flock would open it a second time for what is one call here.
type partialResult struct {
	file      *os.File
	writer    *bufio.Writer
	state     runState
	statePath string
}

// openPartialResult begins a result or resumes one.
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
	p := &partialResult{file: file, statePath: j.Out + ".resume"}
	if err := p.startOrResume(j, h, input); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// startOrResume locks the file, and leaves it at the end of what counts: the header of a new run, or the rows of the
// unfinished one.
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
	p.writer = bufio.NewWriterSize(p.file, 1<<18)
	if !isNew {
		return nil
	}
	if h.hasBOM {
		p.appendText(bom)
	}
	p.appendText(h.formatRow(row{raw: h.raw, fields: h.columns}, resultColumnNames()))
	return p.saveProgress()
}

// loadState reads the progress of an unfinished run, if there is one.
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

// appendText buffers text. It is durable after saveProgress, which also returns the error of writing it.
func (p *partialResult) appendText(text string) {
	n, _ := p.writer.WriteString(text)
	p.state.BytesWritten += int64(n)
}

// saveProgress syncs the rows first and then replaces the progress that counts them.
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

func (p *partialResult) close() error { return p.file.Close() }

// moveIntoPlace renames the complete result to its final name and removes the progress.
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
