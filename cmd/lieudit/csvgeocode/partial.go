package csvgeocode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"lieudit/eventstore/disk/osfile"
)

// runState is the progress of a run, as Out.resume holds it in JSON. The two offsets and the counts describe the same
// moment, so they are saved together.
type runState struct {
	Input        inputIdentity `json:"de"`
	BytesRead    int64         `json:"lu"`    // of the text of In: the end of the last row written
	BytesWritten int64         `json:"ecrit"` // of Out.part
	Counts       Counts        `json:"compte"`
	Version      int           `json:"version"`
}

// stateVersion is the version of the format of results. A run of another version is not resumed: before 2, results were UTF-8
// whatever the encoding of the file, and before 3 they had neither resout nor motif.
const stateVersion = 3

// inputIdentity is what a run must have in common with the unfinished one that it resumes: otherwise one result would hold
// rows of two inputs. A changed file is noticed by its size and time, not by its content.
type inputIdentity struct {
	Size     int64     `json:"octets"`
	Modified time.Time `json:"modifie_le"`
	Vintage  string    `json:"millesime"`
	Fallback bool      `json:"repli,omitempty"`
	Explain  bool      `json:"expliquer,omitempty"`
	Layout   Layout    `json:"trouve"` // which columns are read, including detected ones
}

// isEqual compares times as instants: JSON keeps the instant and loses the location.
func (i inputIdentity) isEqual(o inputIdentity) bool {
	return i.Size == o.Size && i.Modified.Equal(o.Modified) &&
		i.Vintage == o.Vintage && i.Fallback == o.Fallback && i.Explain == o.Explain && i.Layout.isEqual(o.Layout)
}

// ErrRunMismatch says that the unfinished run next to Out had another input. Restart drops that run.
var ErrRunMismatch = errors.New("an unfinished run was of another file, other columns, another fallback, other explanations or another vintage")

// ErrRunDamaged says that the progress of an unfinished run cannot be read, or that the rows that it counts are gone. Restart drops
// that run.
var ErrRunDamaged = errors.New("the files of an unfinished run are damaged")

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
	input := inputIdentity{info.Size(), info.ModTime().UTC(), j.Vintage, j.Fallback, j.Explain, h.describe()}
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
// one cuts the file after the last row whose progress was saved. Its errors are ErrRunInProgress, ErrResultExists,
// ErrRunMismatch, ErrRunDamaged and those of files.
func (p *partialResult) startOrResume(j Job, h header, input inputIdentity) error {
	if err := osfile.TryLock(p.file); err != nil {
		return fmt.Errorf("%s: %w", p.file.Name(), ErrRunInProgress)
	}
	if err := j.checkOutIsFree(); err != nil { // the run that held the lock has finished
		return err
	}
	found, err := false, error(nil)
	if !j.Restart {
		found, err = p.loadState(input)
	}
	if err != nil {
		return err
	}
	if !found {
		p.state = runState{Input: input, BytesRead: h.FirstRow, Version: stateVersion}
	}
	if err := p.file.Truncate(p.state.BytesWritten); err != nil {
		return err
	}
	if _, err := p.file.Seek(p.state.BytesWritten, io.SeekStart); err != nil {
		return err
	}
	p.writer = bufio.NewWriterSize(p.file, 1<<18) // bytes, a few batches
	if found {
		return nil
	}
	line, err := h.writer.Encode(h.writer.AppendHeader(nil))
	if err != nil {
		return err
	}
	p.appendBytes(line)
	return p.saveProgress()
}

// loadState reads the progress of an unfinished run of the same input into state. found is false if there is none.
func (p *partialResult) loadState(input inputIdentity) (found bool, err error) {
	text, err := os.ReadFile(p.statePath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if json.Unmarshal(text, &p.state) != nil {
		return false, fmt.Errorf("%s: %w", p.statePath, ErrRunDamaged)
	}
	if p.state.Version != stateVersion || !p.state.Input.isEqual(input) {
		return false, fmt.Errorf("%s: %w", p.statePath, ErrRunMismatch)
	}
	info, err := p.file.Stat()
	if err == nil && info.Size() < p.state.BytesWritten {
		err = fmt.Errorf("%s: %w", p.file.Name(), ErrRunDamaged)
	}
	return err == nil, err
}

// appendBytes buffers lines and counts them as written. They are durable after saveProgress, which also returns an error of
// writing: bufio.Writer keeps the first one.
func (p *partialResult) appendBytes(lines []byte) {
	n, _ := p.writer.Write(lines)
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
	return osfile.Rename(next.Name(), p.statePath)
}

// close releases the lock and keeps the files, so that another run can resume.
func (p *partialResult) close() error { return p.file.Close() }

// moveIntoPlace makes the complete result durable, renames it to its final name and removes the progress. The lock is held to the
// end, so that no other run takes the complete result for an unfinished one.
func (p *partialResult) moveIntoPlace(out string) error {
	err := p.saveProgress()
	if runtime.GOOS == "windows" { // Windows cannot rename an open file, so the lock ends a moment sooner
		err = errors.Join(err, p.file.Close())
	} else {
		defer p.file.Close() // nothing is written any more
	}
	if err == nil {
		err = osfile.Rename(p.file.Name(), out)
	}
	if err == nil {
		err = os.Remove(p.statePath)
	}
	return err
}
